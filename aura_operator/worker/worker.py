"""The worker process: watches what it may claim and what it owns, fills its slots, and drains at the end.

Owns the process's loops and how they begin and end. What is done with a task is not here (see slots.py, intake.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from aura_operator.auto_reset import AutoResetEvent
from aura_operator.clock import Clock
from aura_operator.core.lifecycle import Phase
from aura_operator.core.ownership import Owner, incarnation_of
from aura_operator.errors import UnreadableObjectError
from aura_operator.store.events import EventRecorder
from aura_operator.store.follow import Change, follow
from aura_operator.store.interface import Selection, Store
from aura_operator.store.leases import WORKER_SELECTOR, lease_ref
from aura_operator.store.resources import LEASES, TASKS, Manifest
from aura_operator.store.view import task_view
from aura_operator.worker.candidates import Candidates
from aura_operator.worker.lease import WorkerLease
from aura_operator.worker.peers import Peers
from aura_operator.worker.runtime.agent_runtime import RuntimeSource
from aura_operator.worker.slots import Slots
from aura_operator.worker.task.live import WorkerContext

log = structlog.get_logger()

SLOT_RETRY_SECONDS = 0.01
RELEASE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker runs. `namespaces` empty: all of them. `drain_seconds`: the time for running effects at the end."""

    name: str
    pod_uid: str
    operator_namespace: str
    namespaces: tuple[str, ...] = ()
    slots: int = 8
    drain_seconds: float = 60.0
    pod_owner: Manifest | None = None

    @property
    def home(self) -> str:
        """A namespace in which this worker may do what it does."""
        return (self.namespaces or (self.operator_namespace,))[0]


async def nothing() -> None:
    """Does nothing."""


async def at_once(tell: Callable[[str], None]) -> None:
    """A preflight for a cluster that is known to be fit."""


class Worker:
    """One incarnation of a worker. `nonce` is new for each start of the process.

    `preflight` returns once the cluster is fit for a worker, and tells until then what is wrong; nothing is claimed
    before. `warm_up` runs beside everything else once tasks are taken.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        store: Store,
        clock: Clock,
        runtimes: RuntimeSource,
        nonce: str,
        *,
        preflight: Callable[[Callable[[str], None]], Awaitable[None]] = at_once,
        warm_up: Callable[[], Awaitable[None]] = nothing,
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._preflight = preflight
        self._warm_up = warm_up
        self._owner = Owner(worker=settings.name, incarnation=incarnation_of(settings.pod_uid, nonce))
        self.lease = WorkerLease(
            store,
            clock,
            lease_ref(settings.operator_namespace, settings.name),
            incarnation=self._owner.incarnation,
            pod_uid=settings.pod_uid,
            pod_owner=settings.pod_owner,
            free_slots=lambda: self._free_slots(),
        )
        self._candidates = Candidates(settings.name)
        self._peers = Peers()
        self._wake = AutoResetEvent()
        context = WorkerContext(
            store=store,
            clock=clock,
            lease=self.lease,
            owner=self._owner,
            events=EventRecorder(store, clock, component="worker", instance=settings.name),
        )
        self.slots = Slots(
            settings.slots,
            context=context,
            runtimes=runtimes,
            candidates=self._candidates,
            freed=self._wake.set,
        )
        self._draining = False
        self._why_not: str | None = "it is starting"

    def not_ready(self) -> str | None:
        """Why this worker takes no tasks now, None if it takes them."""
        if self._draining:
            return "it drains: its tasks go to others"
        return self._why_not or (None if self.lease.may_start() else "it couldn't renew its Lease in time")

    def unhealthy(self) -> str | None:
        """Why only a restart would help: never, since a worker that loses its Lease ends by itself."""
        return None

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, then drains. Raises FencedError (in a group) when its Lease is lost."""
        if await _ended_before(stop, self._admitted()):
            log.info("worker started", worker=self._owner.worker, incarnation=self._owner.incarnation)
            await self._work(stop)
        # Also where it was stopped while waiting for its Lease: the request may have landed.
        await self.lease.give_up()

    async def _admitted(self) -> None:
        await self._preflight(self._unfit)
        self._why_not = "it waits for its Lease"
        await self.lease.acquire()

    def _unfit(self, why: str) -> None:
        self._why_not = why

    async def _work(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group, self.slots:
            loops = [group.create_task(self.lease.keep()), group.create_task(self._watch_leases())]
            for namespace in self._settings.namespaces or (None,):
                loops.append(group.create_task(self._watch_pending(namespace)))
                loops.append(group.create_task(self._watch_owned(namespace)))
            loops.append(group.create_task(self._dispatch()))
            self._why_not = None
            loops.append(group.create_task(_awaited(self._warm_up())))
            await stop.wait()
            await self._drain()
            for loop in loops:
                loop.cancel()

    async def _drain(self) -> None:
        """Claims nothing more, lets running effects come to their end, hands everything over."""
        self._draining = True
        log.info("draining", tasks=len(self.slots))
        self.slots.drain()
        if await self.slots.emptied(self._settings.drain_seconds):
            return
        log.warning(
            "effects still running at the end of the grace period; they will be in doubt", tasks=self.slots.names
        )
        self.slots.abandon()
        if not await self.slots.emptied(RELEASE_SECONDS):
            self.slots.cancel()

    def _free_slots(self) -> int:
        return 0 if self._draining else self.slots.free()

    async def _watch_leases(self) -> None:
        selection = Selection(resource=LEASES, namespace=self._settings.operator_namespace, labels=WORKER_SELECTOR)
        async for seen in follow(self._store, selection, self._clock):
            if seen.change is Change.SET:
                self._peers.seen(seen.object, self._clock.boot())
            elif seen.change is Change.GONE:
                self._peers.gone(seen.object)

    async def _watch_pending(self, namespace: str | None) -> None:
        selection = Selection(resource=TASKS, namespace=namespace, fields=f"status.phase={Phase.PENDING.value}")
        async for seen in follow(self._store, selection, self._clock):
            if seen.change is Change.SET:
                self._offer(seen.object)
            elif seen.change is Change.GONE:
                self._candidates.forget(seen.object["metadata"]["uid"])

    def _offer(self, manifest: Manifest) -> None:
        now = self._clock.boot()
        try:
            self._candidates.offer(task_view(manifest), self._peers.with_free_slots(now), now, self._clock.now())
        except UnreadableObjectError as error:
            self._candidates.forget(manifest["metadata"]["uid"])
            log.warning("left alone", error=str(error))
        self._wake.set()

    async def _watch_owned(self, namespace: str | None) -> None:
        selection = Selection(resource=TASKS, namespace=namespace, fields=f"status.owner.worker={self._owner.worker}")
        async for seen in follow(self._store, selection, self._clock):
            if seen.change is Change.SET:
                try:
                    self.slots.seen(seen.object)
                except UnreadableObjectError as error:
                    log.warning("left alone", error=str(error))
            elif seen.change is Change.GONE:
                self.slots.gone(seen.object)

    async def _dispatch(self) -> None:
        """Claims whenever there is something to claim and room for it."""
        while True:
            now = self._clock.boot()
            task = None
            if not self._draining and self.lease.may_start():
                task = self._candidates.take(
                    now, self._clock.now(), free_slots=self._free_slots(), running=len(self.slots)
                )
            if task is None:
                due = self._candidates.next_due(now)
                # A candidate that is due and can't be taken waits for a slot, whose end rings.
                await self._wake.wait(1.0 if due is None else min(1.0, due - now))
            elif task.uid in self.slots:
                # Woken before the last run of it has quite left its slot.
                self._candidates.postpone(task, now + SLOT_RETRY_SECONDS)
            else:
                self.slots.start(task)


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _ended_before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Whether the work came to its end before `stop` was set; it is given up otherwise. Raises what the work raises."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
        return False
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)
