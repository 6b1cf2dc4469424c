"""The worker process: watches what it may claim and what it owns, fills its slots, and drains at the end.

Owns the process's loops and how they end. What is done with a task is intake.py's and runner.py's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from aura_operator.agent.models import preload
from aura_operator.auto_reset import AutoResetEvent
from aura_operator.clock import Clock
from aura_operator.core.instants import from_text
from aura_operator.core.lifecycle import Phase
from aura_operator.core.ownership import Owner, incarnation_of
from aura_operator.errors import AuraError, ConflictError, NotFoundError, StoreError
from aura_operator.store.commit import commit, get_retrying
from aura_operator.store.events import EventRecorder
from aura_operator.store.follow import Change, follow
from aura_operator.store.interface import Selection, Store
from aura_operator.store.leases import WORKER_SELECTOR, lease_ref
from aura_operator.store.resources import LEASES, TASKS, Manifest
from aura_operator.store.task_writes import JournalDelta, release
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker import preflight, reporting
from aura_operator.worker.candidates import Candidates, quarantined
from aura_operator.worker.ending import Ended
from aura_operator.worker.intake import AgentMissing, revision_for, take
from aura_operator.worker.lease import WorkerLease
from aura_operator.worker.live import WorkerContext, owned_task
from aura_operator.worker.peers import Peers
from aura_operator.worker.runner import Runner
from aura_operator.worker.runtime import RuntimePool

log = structlog.get_logger()

AGENT_GRACE_SECONDS = 10.0  # a task may be applied before its agent
RETRY_SECONDS = 1.0
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


@dataclass(slots=True, kw_only=True)
class _Slot:
    task: TaskView
    work: asyncio.Task[None]
    runner: Runner | None = None


class Worker:
    """One incarnation of a worker."""

    def __init__(self, settings: WorkerSettings, store: Store, clock: Clock, nonce: str) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
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
        self._context = WorkerContext(
            store=store,
            clock=clock,
            lease=self.lease,
            owner=self._owner,
            events=EventRecorder(store, clock, component="worker", instance=settings.name),
        )
        self._pool = RuntimePool(store, clock)
        self._candidates = Candidates(settings.name)
        self._peers = Peers()
        self._slots: dict[str, _Slot] = {}
        self._wake = AutoResetEvent()
        self._draining = False
        self.claiming = False

    @property
    def _home(self) -> str:
        """A namespace in which this worker may do what it does."""
        return (self._settings.namespaces or (self._settings.operator_namespace,))[0]

    @property
    def ready(self) -> bool:
        """Whether this worker takes tasks: it does once it holds its Lease, and not while it can't renew it."""
        return self.claiming and not self._draining and self.lease.may_start()

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set, then drains. Raises FencedError (in a group) when its Lease is lost."""
        await preload.load()
        await preflight.passed(self._store, self._clock, self._home)
        await self.lease.acquire()
        log.info("worker started", worker=self._owner.worker, incarnation=self._owner.incarnation)
        try:
            async with asyncio.TaskGroup() as group:
                loops = [group.create_task(self.lease.keep()), group.create_task(self._watch_leases())]
                for namespace in self._settings.namespaces or (None,):
                    loops.append(group.create_task(self._watch_pending(namespace)))
                    loops.append(group.create_task(self._watch_owned(namespace)))
                loops.append(group.create_task(self._dispatch(group)))
                self.claiming = True
                loops.append(group.create_task(asyncio.to_thread(preload.load_usual_providers)))
                await stop.wait()
                await self._drain()
                for loop in loops:
                    loop.cancel()
        finally:
            await self._pool.aclose()
        await self.lease.give_up()

    async def _drain(self) -> None:
        """Claims nothing more, lets running effects come to their end, hands everything over."""
        self._draining = True
        log.info("draining", tasks=len(self._slots))
        for slot in self._slots.values():
            if slot.runner is not None:
                slot.runner.drain()
        if await self._emptied(self._settings.drain_seconds):
            return
        names = [str(slot.task.ref) for slot in self._slots.values()]
        log.warning("effects still running at the end of the grace period; they will be in doubt", tasks=names)
        for slot in self._slots.values():
            if slot.runner is not None:
                slot.runner.abandon()
        if not await self._emptied(RELEASE_SECONDS):
            for slot in list(self._slots.values()):
                slot.work.cancel()

    async def _emptied(self, seconds: float) -> bool:
        """Waits until no task is left in a slot; False if that takes longer."""
        try:
            async with asyncio.timeout(seconds):
                while self._slots:
                    await self._wake.wait(None)
        except TimeoutError:
            return False
        return True

    def _free_slots(self) -> int:
        if self._draining or any(quarantined(slot.task) for slot in self._slots.values()):
            return 0
        return max(0, self._settings.slots - len(self._slots))

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
                now = self._clock.boot()
                self._candidates.offer(task_view(seen.object), self._peers.with_free_slots(now), now, self._clock.now())
                self._wake.set()
            elif seen.change is Change.GONE:
                self._candidates.forget(seen.object["metadata"]["uid"])

    async def _watch_owned(self, namespace: str | None) -> None:
        selection = Selection(resource=TASKS, namespace=namespace, fields=f"status.owner.worker={self._owner.worker}")
        async for seen in follow(self._store, selection, self._clock):
            if seen.change is Change.SET:
                await self._owned(seen.object)
            elif seen.change is Change.GONE:
                await self._no_longer_owned(seen.object)

    async def _owned(self, manifest: Manifest) -> None:
        task = task_view(manifest)
        slot = self._slots.get(task.uid)
        if slot is not None:
            if slot.runner is not None:
                slot.runner.seen(manifest)
        elif task.owned_by(self._owner):
            await self._return(task)

    async def _return(self, task: TaskView) -> None:
        """Releases a task that says it is ours and that we don't run: a claim whose answer came to nobody, or a journal
        that somebody changed under us, which the next claim finds out and says."""
        try:
            found = task_view(await get_retrying(self._store, task.ref, self._clock))
            if task.uid in self._slots or found.uid != task.uid or not found.owned_by(self._owner):
                return
            owned = owned_task(found, self._owner)
            nothing = JournalDelta(lines=(), head=owned.head)
            fields = reporting.left("handed back; wants a worker")
            await commit(self._store, release(owned, nothing, now=self._clock.now(), fields=fields), self._clock)
        except (ConflictError, NotFoundError) as error:
            log.info("not released", task=str(task.ref), error=str(error))

    async def _no_longer_owned(self, manifest: Manifest) -> None:
        """A watch says that a task is gone or another's; reads to know, and stops running it."""
        uid = manifest["metadata"]["uid"]
        slot = self._slots.get(uid)
        if slot is None or slot.runner is None:
            return
        try:
            found = task_view(await self._store.get(slot.task.ref))
            if found.uid == uid and (found.owned_by(self._owner) or found.phase is not Phase.RUNNING):
                return  # ours again, or ended by ourselves
        except NotFoundError:
            pass
        except StoreError as error:
            log.warning("can't tell whether a task is still ours", task=str(slot.task.ref), error=str(error))
            return
        log.warning("task deleted or taken over; stopping it", task=str(slot.task.ref))
        slot.work.cancel()

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        """Claims whenever there is something to claim and room for it."""
        while True:
            now = self._clock.boot()
            task = None
            if not self._draining and self.lease.may_start():
                task = self._candidates.take(
                    now, self._clock.now(), free_slots=self._free_slots(), running=len(self._slots)
                )
            if task is None:
                due = self._candidates.next_due()
                # A candidate that is due and can't be taken waits for a slot, whose end rings.
                pause = max(0.0, due - now) if due is not None and due > now else 1.0
                await self._wake.wait(pause)
            elif task.uid in self._slots:
                # Woken before the last run of it has quite left its slot.
                self._candidates.postpone(task, now + SLOT_RETRY_SECONDS)
            else:
                work = group.create_task(self._work(task))
                self._slots[task.uid] = _Slot(task=task, work=work)

    async def _work(self, task: TaskView) -> None:
        try:
            missing: AgentMissing | None = None
            revision = ""
            try:
                revision = await revision_for(self._context, task)
            except AgentMissing as error:
                age = self._clock.now() - from_text(task.manifest["metadata"]["creationTimestamp"])
                if age < AGENT_GRACE_SECONDS:
                    self._candidates.postpone(task, self._clock.boot() + RETRY_SECONDS)
                    return
                missing = error
            ended = await take(
                self._context,
                self._pool,
                task,
                revision,
                missing=missing,
                running=lambda runner: self._started(task, runner),
            )
            self._slots.pop(task.uid)
            if ended is Ended.LOST:
                await self._return(task)
            elif ended is Ended.LEFT:
                self._candidates.leave(task)
        except AuraError as error:  # before the claim, so the task is untouched
            log.warning("not claimed, will try again", task=str(task.ref), error=str(error))
            self._candidates.postpone(task, self._clock.boot() + RETRY_SECONDS)
        finally:
            self._slots.pop(task.uid, None)
            self._wake.set()

    def _started(self, task: TaskView, runner: Runner) -> None:
        self._slots[task.uid].runner = runner
        if self._draining:
            runner.drain()
