"""Controllers on a store in memory, in virtual time, and the objects that users and workers would have written.

Owns no rule: the controllers are the product's, and so are the writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aura_operator.controller.controller import Controller, ControllerSettings
from aura_operator.controller.events import EventSource, StoreEvents, Tell
from aura_operator.core.instants import to_second_text
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.core.ownership import Owner, incarnation_of
from aura_operator.store import task_writes
from aura_operator.store.approvals import ApprovalView, approval_ref, approval_view
from aura_operator.store.conditions import Condition, updated
from aura_operator.store.follow import Seen
from aura_operator.store.interface import add
from aura_operator.store.leases import lease_ref
from aura_operator.store.resources import AGENTS, APPROVALS, TASKS, Manifest, Ref, Resource, new
from aura_operator.store.task_fields import ConditionFields, Wait
from aura_operator.store.view import TaskView, task_ref, task_view
from aura_operator.testing.clock import FakeClock
from aura_operator.testing.faulty import Call, FaultyStore
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.store_checks_writes import A, Ground, claim, delta, finish, owned
from aura_operator.worker.lease import WorkerLease

HOME = "aura-system"


class Gate:
    """An EventSource that can be shut: nothing comes through then, and nothing is told later."""

    def __init__(self, inner: EventSource) -> None:
        self._inner = inner
        self.shut = False
        self.lives = 0
        self._end = asyncio.Event()

    async def run(self, resources: Sequence[Resource], tell: Tell) -> None:
        self.lives += 1
        self._end = asyncio.Event()

        def through(resource: Resource, seen: Seen) -> None:
            if not self.shut:
                tell(resource, seen)

        running = asyncio.ensure_future(self._inner.run(resources, through))
        try:
            await self._end.wait()
            raise ConnectionError("the source broke")
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def break_down(self) -> None:
        self._end.set()


class Seat:
    """One controller process with a connection of its own. `writes` are those of tasks, approvals and agents."""

    def __init__(self, house: House, name: str, pod_uid: str) -> None:
        self.store = FaultyStore(house.memory, house.clock)
        self.gate = Gate(StoreEvents(self.store, house.clock))
        settings = ControllerSettings(name=name, pod_uid=pod_uid, operator_namespace=HOME)
        self.controller = Controller(settings, self.store, house.clock, self.gate)
        self.stop = asyncio.Event()
        self._process: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._process = asyncio.ensure_future(self.controller.run(self.stop))

    async def kill(self) -> None:
        """As kill -9: nothing is given up, nothing tidied."""
        if self._process is not None:
            self._process.cancel()
            await asyncio.gather(self._process, return_exceptions=True)

    async def ended(self) -> None:
        self.stop.set()
        if self._process is not None:
            await self._process

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.store.log if call.writes and call.resource in (TASKS, APPROVALS, AGENTS)]


class House:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = MemoryStore(self.clock, user="bob")
        self.ground = self._ground("n")

    def _ground(self, namespace: str) -> Ground:
        return Ground(store=self.memory, user_store=self.memory, clock=self.clock, namespace=namespace)

    # Controllers and workers

    @asynccontextmanager
    async def controlled(self, *names: str) -> AsyncIterator[list[Seat]]:
        """With controllers of these names running, until the end of the block."""
        seats = [Seat(self, name, f"pod-{name}") for name in names or ("c",)]
        for seat in seats:
            seat.start()
            await self.clock.advance(0.1)  # the first leads
        yield seats
        for seat in seats:
            await seat.kill()

    @asynccontextmanager
    async def worker(self, name: str = "a", nonce: str = "1", *, slots: int = 3) -> AsyncIterator[Owner]:
        """With a worker's Lease being renewed, until the end of the block: then it is as dead as after kill -9."""
        owner = Owner(worker=name, incarnation=incarnation_of(f"pod-{name}", nonce))
        lease = WorkerLease(
            self.memory,
            self.clock,
            lease_ref(HOME, name),
            incarnation=owner.incarnation,
            pod_uid=f"pod-{name}",
            pod_owner=None,
            free_slots=lambda: slots,
        )
        await lease.acquire()
        keeping = asyncio.ensure_future(lease.keep())
        yield owner
        keeping.cancel()

    # Objects

    async def task(self, name: str = "one", *, namespace: str = "n", **spec: Any) -> TaskView:
        body = {"agentRef": {"name": "sre"}, "input": "go", **spec}
        return task_view(await self.memory.create(TASKS, new(TASKS, namespace, name, spec=body)))

    async def running(self, name: str = "one", owner: Owner = A, **where: Any) -> TaskView:
        return task_view(await self.ground.do(claim(await self.task(name, **where), owner)))

    async def parked(self, name: str, *waits: Wait, **where: Any) -> TaskView:
        """A task that a worker has parked, with the condition that says so."""
        return await self.park(await self.running(name, **where), *waits)

    async def parked_again(self, name: str, *waits: Wait) -> TaskView:
        """A task that was woken, once a worker has claimed it and found that it has to wait."""
        woken = task_view(await self.memory.get(task_ref("n", name)))
        return await self.park(task_view(await self.ground.do(claim(woken, A))), *waits)

    async def park(self, task: TaskView, *waits: Wait) -> TaskView:
        held = owned(task, A)
        parked = Condition(type="Parked", holds=True, reason="ApprovalRequired", message="somebody is asked")
        write = task_writes.park(
            held,
            delta(held, '{"k":"asked"}'),
            waiting_for=waits,
            fired=task.fired,
            now=self.clock.now(),
            fields={"summary": "parked", "conditions": updated(task.conditions, parked, now=self.clock.now())},
        )
        return task_view(await self.ground.do(write))

    async def finished(self, name: str = "one", phase: Phase = Phase.SUCCEEDED, **where: Any) -> TaskView:
        task = await self.running(name, **where)
        return task_view(await self.ground.do(finish(owned(task, A), phase)))

    async def asking(self, name: str = "one", *, seconds: float = 3600, **where: Any) -> TaskView:
        """A task that is parked for the approval `<name>-1`, which is there."""
        until = self.clock.now() + seconds
        task = await self.parked(name, Wait(kind=WaitKind.APPROVAL, name=f"{name}-1", until=until), **where)
        await self.approval(task, until)
        return task

    async def approval(self, task: TaskView, until: float) -> ApprovalView:
        request = {
            "task": task.ref.name,
            "run": task.run,
            "call": 1,
            "kind": "ToolCall",
            "tool": "k8s__delete",
            "effect": "Once",
            "arguments": "{}",
            "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        }
        ground = self._ground(task.ref.namespace)
        ref = await ground.approval(task, request=request, expiresAt=to_second_text(until))
        return approval_view(await self.memory.get(ref))

    async def approve(self, name: str = "one-1", *, namespace: str = "n") -> None:
        vote = {"approved": True, "reason": "ok"}
        await self.memory.patch(approval_ref(namespace, name), [add("/spec/decision", vote)])

    async def agent(self, name: str = "sre", **spec: Any) -> Ref:
        body = {"model": {"name": "scripted:none"}, **spec}
        await self.memory.create(AGENTS, new(AGENTS, "n", name, spec=body))
        return Ref(resource=AGENTS, namespace="n", name=name)

    async def patch(self, ref: Ref, path: str, value: Any) -> None:
        await self.memory.patch(ref, [add(path, value)])

    async def delete(self, ref: Ref) -> None:
        await self.memory.delete(ref, uid=(await self.memory.get(ref))["metadata"]["uid"])

    # What is there

    async def status(self, name: str = "one", *, namespace: str = "n") -> Manifest:
        found: Manifest = (await self.memory.get(task_ref(namespace, name)))["status"]
        return found

    async def condition(self, kind: str, name: str = "one") -> ConditionFields | None:
        conditions = (await self.status(name)).get("conditions", ())
        return next((item for item in conditions if item["type"] == kind), None)

    async def phase(self, name: str = "one", *, namespace: str = "n") -> str:
        return str((await self.status(name, namespace=namespace))["phase"])
