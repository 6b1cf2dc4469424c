"""A world in one event loop: a store in memory, a controller, a person who answers, and workers that can be killed.

Owns what makes a process mortal. Both processes are the real ones, on a store in memory; model and tools are those of
fakes.py. Time is virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aura_operator.api.agent import AgentSpec
from aura_operator.controller.controller import Controller, ControllerSettings
from aura_operator.controller.events import StoreEvents
from aura_operator.core.lifecycle import Phase
from aura_operator.core.limits import Limits
from aura_operator.errors import AlreadyExistsError
from aura_operator.store.approvals import PENDING, approval_view
from aura_operator.store.follow import Change, follow
from aura_operator.store.interface import Selection, add
from aura_operator.store.resources import AGENTS, APPROVALS, SECRETS, TASKS, Manifest, Ref, new
from aura_operator.store.view import TaskView, task_ref, task_view
from aura_operator.testing.clock import FakeClock
from aura_operator.testing.faulty import Call, FaultyStore
from aura_operator.testing.memory import MemoryStore
from aura_operator.worker.lease import WorkerLease
from aura_operator.worker.runtime.agent_runtime import AgentRuntime, Secrets
from aura_operator.worker.runtime.pool import RuntimePool
from aura_operator.worker.worker import Worker, WorkerSettings, at_once
from tests.worker.fakes import AGENT_SPEC, MODEL_SPEC, RULES, LedgerTools, Line, ProgramModel

NAMESPACE, HOME = "n", "aura-system"
ONE = task_ref(NAMESPACE, "one")

Preflight = Callable[[Callable[[str], None]], Awaitable[None]]
Turn = Sequence[str]
"""The tools that the model calls side by side; after the last turn it answers."""


class World:
    """`turns` is the model's program. The tools are `s__read`, `s__idempotent`, `s__once` and `s__approved` (Once, with
    a person's approval); each takes `tool_seconds`."""

    def __init__(self, turns: Sequence[Turn], *, choice: str = "Done", recoveries: int = 100) -> None:
        self.clock = FakeClock()
        self.memory = MemoryStore(self.clock, user="bob")
        self.ledger: list[Line] = []
        self.tool_seconds = 1.0
        self.text_bytes = 0  # of each tool's result, at least
        self.turns = turns
        self.choice = choice
        self.answering = True
        self.limits = Limits(recoveries=recoveries)
        self.lives = 0
        self.slots = 8
        self.drain_seconds = 20.0  # less than a call may take
        self._controller = Controller(
            ControllerSettings(name="c", pod_uid="pod-c", operator_namespace=HOME),
            self.memory,
            self.clock,
            StoreEvents(self.memory, self.clock),
        )

    async def agent(self, namespace: str = NAMESPACE, *, secret: str | None = None) -> None:
        """Creates the agent `sre`, which names a Secret if it is given one."""
        spec = AGENT_SPEC
        if secret is not None:
            await self.memory.create(SECRETS, new(SECRETS, namespace, secret, data={"key": "a2V5"}))
            spec = {**AGENT_SPEC, "model": {**MODEL_SPEC, "apiKeySecretRef": {"name": secret, "key": "key"}}}
        await self.memory.create(AGENTS, new(AGENTS, namespace, "sre", spec=spec))

    async def create(self, ref: Ref = ONE, **spec: Any) -> TaskView:
        """Creates a task, and its agent if there is none."""
        with suppress(AlreadyExistsError):
            await self.agent(ref.namespace)
        body = {"agentRef": {"name": "sre"}, "input": "go", **spec}
        return task_view(await self.memory.create(TASKS, new(TASKS, ref.namespace, ref.name, spec=body)))

    async def task(self, ref: Ref = ONE) -> TaskView:
        return task_view(await self.memory.get(ref))

    async def status(self, ref: Ref = ONE) -> Manifest:
        status: Manifest = (await self.memory.get(ref))["status"]
        return status

    async def until(self, ref: Ref, *phases: Phase) -> Manifest:
        """The status of a task once it is in one of these phases; two hours are plenty."""
        async with asyncio.timeout(7200):
            async for seen in follow(self.memory, Selection(resource=TASKS, namespace=ref.namespace), self.clock):
                named = seen.change is Change.SET and seen.object["metadata"]["name"] == ref.name
                if named and task_view(seen.object).phase in phases:
                    break
        return await self.status(ref)

    async def ended(self, ref: Ref = ONE) -> Manifest:
        """The status of a task once it has ended."""
        return await self.until(ref, *(phase for phase in Phase if phase.terminal))

    def starts(self, tool: str) -> int:
        return sum(line.tool == tool for line in self.ledger)

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[None]:
        """With the controller running, and a person who answers what is asked."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._controller.run(stop))
            answering = group.create_task(self._answers())
            yield
            stop.set()
            answering.cancel()

    async def _answers(self) -> None:
        async for seen in follow(self.memory, Selection(resource=APPROVALS), self.clock):
            if seen.change is Change.SET:
                await self._answer(seen.object)

    async def _answer(self, manifest: Manifest) -> None:
        view = approval_view(manifest)
        if not self.answering or view.phase != PENDING or view.votes:
            return
        vote = {"approved": True, "reason": "ok"}
        if view.request.kind.value == "InDoubt":
            vote["choice"] = self.choice
        await self.memory.patch(view.ref, [add("/spec/decision", vote)])

    # Workers

    def life(self, name: str = "w", *, dies_at: int | None = None, preflight: Preflight = at_once) -> Life:
        """The next life of a worker's process. `dies_at`: the point (see Life) at which it is killed."""
        self.lives += 1
        return Life(world=self, name=name, number=self.lives, dies_at=dies_at, preflight=preflight)


@dataclass(kw_only=True)
class Life:
    """One process. It passes points, counted from 1: before and after each request to the store, and before, in and
    after each tool call. Killed at one, nothing of it reaches the store or a tool server any more. At a point of
    `held` it waits for the event."""

    world: World
    name: str
    number: int
    dies_at: int | None
    preflight: Preflight = at_once
    passed: int = 0
    points: list[str] = field(default_factory=list)
    dead: bool = False
    held: dict[str, asyncio.Event] = field(default_factory=dict)

    def __post_init__(self) -> None:
        world = self.world
        self.store = FaultyStore(world.memory, world.clock)
        self.store.before = lambda call: self._requests("before", call)
        self.store.after = lambda call: self._requests("after", call)
        settings = WorkerSettings(
            name=self.name,
            pod_uid=f"pod-{self.name}",
            operator_namespace=HOME,
            slots=world.slots,
            drain_seconds=world.drain_seconds,
        )
        # Looked up when it is called, so that a test can replace it.
        self.pool = RuntimePool(self.store, world.clock, lambda spec, secrets: self._runtime(spec, secrets))
        self.worker = Worker(settings, self.store, world.clock, self.pool, str(self.number), preflight=self.preflight)
        self.stop = asyncio.Event()
        self._killed = asyncio.Event()

    async def _requests(self, when: str, call: Call) -> None:
        if call.method in ("list", "watch") and not self.dead:
            return  # nothing of the task's depends on where among these it dies
        await self.point(f"{when} {_named(call)}")

    @property
    def lease(self) -> WorkerLease:
        return self.worker.lease

    async def point(self, name: str) -> None:
        if self.dead:
            raise asyncio.CancelledError  # whatever a dead process still wants to do
        self.passed += 1
        self.points.append(name)
        if self.passed == self.dies_at:
            self.kill()
            await asyncio.Event().wait()
        if name in self.held:
            await self.held[name].wait()

    async def reached(self, name: str) -> None:
        """Returns once it has passed a point of that name."""
        async with asyncio.timeout(600):
            while name not in self.points:
                await self.world.clock.sleep(0.01)

    def drain(self) -> None:
        """As on SIGTERM: hands over what it runs, claims nothing more, and ends."""
        self.stop.set()

    def kill(self) -> None:
        self.dead = True
        self._killed.set()

    async def run(self) -> None:
        """Lives until killed, or cancelled."""
        living = asyncio.ensure_future(self._live())
        killed = asyncio.ensure_future(self._killed.wait())
        try:
            await asyncio.wait({living, killed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = living.done()
            self.dead = True
            living.cancel()
            killed.cancel()
            await asyncio.gather(living, killed, return_exceptions=True)
        if ended:
            living.result()

    async def _live(self) -> None:
        async with self.pool:
            await self.worker.run(self.stop)

    def _runtime(self, spec: AgentSpec, secrets: Secrets) -> AgentRuntime:
        return AgentRuntime(
            spec=spec,
            model=ProgramModel(self.world),
            toolbox=LedgerTools(self),
            rules=RULES,
            limits=self.world.limits,
            server_timeouts={},
        )


def _named(call: Call) -> str:
    what = call.resource.plural
    return f"{call.method} {what}" + ("/" + call.ref.name.partition("-")[0] if call.ref else "")


@asynccontextmanager
async def one_worker(
    turns: Sequence[Turn] = (), *, slots: int = 8, tool_seconds: float = 1.0
) -> AsyncIterator[tuple[World, Life]]:
    """A world with a controller and one worker, and no task yet."""
    world = World(turns)
    world.slots, world.tool_seconds = slots, tool_seconds
    async with world.controlled(), asyncio.TaskGroup() as group:
        life = world.life()
        running = group.create_task(life.run())
        yield world, life
        running.cancel()
