"""Reconciles one AuraTask: orphans it, wakes it, says why it is pending, withdraws its approvals, deletes it by TTL.

Level-based: the same task seen twice is handled twice with the same end. Never writes a journal or a result.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import assert_never

import structlog

from aura_operator.clock import Clock
from aura_operator.controller.owners import Owners
from aura_operator.controller.schedule import Schedule
from aura_operator.controller.wakes import Gathered, look_again_at, wake_for
from aura_operator.core import codec
from aura_operator.core.approvals import Decision
from aura_operator.core.entries import Proof, Verdict
from aura_operator.core.instants import from_text
from aura_operator.core.lifecycle import Desired, Phase, WaitKind
from aura_operator.core.ownership import Owner
from aura_operator.errors import ConflictError, ContentRejectedError, NotFoundError
from aura_operator.store.approval_writes import settle_approval
from aura_operator.store.approvals import PENDING, approval_ref, approval_view
from aura_operator.store.commit import commit, get_retrying
from aura_operator.store.events import EventRecorder, EventType
from aura_operator.store.interface import Store
from aura_operator.store.leases import lease_ref
from aura_operator.store.resources import Ref
from aura_operator.store.task_writes import fire, orphan, remark
from aura_operator.store.view import TaskView, task_ref, task_view

log = structlog.get_logger()

GONE = "Gone"
PENDING_PATIENCE_SECONDS = 5.0  # a task that is pending for longer gets a summary that says why


class TaskReconciler:
    """Handles tasks one at a time; `owners` and `schedule` are shared with the rest of the controller."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        owners: Owners,
        schedule: Schedule,
        events: EventRecorder,
        operator_namespace: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._owners = owners
        self._schedule = schedule
        self._events = events
        self._operator_namespace = operator_namespace
        self._approval_phases: dict[str, str] = {}  # as events told them; what isn't here is read
        self._asking: dict[str, dict[str, Ref]] = {}  # open approvals by task
        self._parked: dict[str, TaskView] = {}  # as last seen, without their objects

    def approval_seen(self, ref: Ref, task: str, phase: str) -> None:
        self._approval_phases[str(ref)] = phase
        asking = self._asking.setdefault(str(task_ref(ref.namespace, task)), {})
        if phase == PENDING:
            asking[str(ref)] = ref
        else:
            asking.pop(str(ref), None)
        if not asking:
            del self._asking[str(task_ref(ref.namespace, task))]

    def approval_gone(self, ref: Ref, task: str) -> None:
        self.approval_seen(ref, task, GONE)
        del self._approval_phases[str(ref)]

    async def look(self, ref: Ref) -> None:
        """Reads a task and reconciles it."""
        try:
            manifest = await get_retrying(self._store, ref, self._clock)
        except NotFoundError:
            self._schedule.at(ref, None)
            return
        await self.reconcile(task_view(manifest))

    async def reconcile(self, task: TaskView) -> None:
        """Does what the task's present state calls for."""
        if task.phase is not Phase.RUNNING:
            self._owners.ended(task.uid)
        if task.phase is Phase.WAITING:
            self._parked[str(task.ref)] = replace(task, manifest={})
        else:
            self._parked.pop(str(task.ref), None)
        match task.phase:
            case Phase.RUNNING:
                await self._running(task)
            case Phase.WAITING:
                await self._waiting(task)
            case Phase.PENDING:
                await self._pending(task)
            case Phase.SUCCEEDED | Phase.FAILED | Phase.CANCELLED:
                await self._finished(task)
            case _:
                assert_never(task.phase)

    async def decided(self, ref: Ref, run: str, name: str, why: str) -> None:
        """Wakes the task that waits for the approval `name`, if it is that run of it."""
        parked = self._parked.get(str(ref))
        if parked is not None and parked.run == run and await self.fire(parked, name, why):
            return
        try:  # what was last seen of it is out of date, or it was never seen
            task = task_view(await get_retrying(self._store, ref, self._clock))
        except NotFoundError:
            return
        if task.run == run:
            await self.fire(task, name, why)

    def gone(self, task_uid: str, ref: Ref) -> None:
        self._parked.pop(str(ref), None)
        self._owners.ended(task_uid)
        self._schedule.at(ref, None)

    async def orphaned(self, owner: Owner, proof: Proof) -> None:
        """Takes all running tasks from an owner that is proven dead, after a fresh look at its Lease and each task."""
        fresh = await self._confirmed(owner)
        if fresh is None:
            return
        # Side by side: one that can't be read or written now, for want of rights in its namespace, holds up no other.
        taken = await asyncio.gather(
            *(self._take(ref, owner, fresh) for ref in self._owners.tasks(owner)), return_exceptions=True
        )
        errors = [error for error in taken if isinstance(error, Exception)]
        if errors:
            raise errors[0]

    async def _take(self, ref: Ref, owner: Owner, proof: Proof) -> None:
        try:
            task = task_view(await get_retrying(self._store, ref, self._clock))
        except NotFoundError:
            return
        if task.owned_by(owner):
            await self._orphan(task, proof)

    async def _confirmed(self, owner: Owner) -> Proof | None:
        """The proof once more, from a quorum read of the Lease."""
        try:
            lease = await get_retrying(self._store, lease_ref(self._operator_namespace, owner.worker), self._clock)
            self._owners.lease(lease, self._clock.boot())
        except NotFoundError:
            self._owners.lease_gone(owner.worker)
        return self._owners.proof(owner, self._clock.boot())

    async def _running(self, task: TaskView) -> None:
        assert task.owner is not None
        self._owners.runs(task.uid, task.ref, task.owner, self._clock.boot())
        self._schedule.at(task.ref, None)
        proof = self._owners.proof(task.owner, self._clock.boot())
        if proof is not None:
            await self.orphaned(task.owner, proof)

    async def _orphan(self, task: TaskView, proof: Proof) -> None:
        assert task.owner is not None
        why = f"its worker {task.owner.worker} ended ({proof.value}); wants a worker"
        try:
            write = orphan(task, proof, now=self._clock.now(), fields={"summary": why})
            await commit(self._store, write, self._clock)
        except (ConflictError, NotFoundError) as error:
            log.info("not orphaned", task=str(task.ref), error=str(error))
            return
        self._owners.ended(task.uid)
        log.info("orphaned", task=str(task.ref), epoch=task.epoch, worker=task.owner.worker, proof=proof.value)
        await self._events.record(task.manifest, "Orphaned", why, event_type=EventType.WARNING)

    async def _waiting(self, task: TaskView) -> None:
        gathered = Gathered(task=task, approvals=await self._phases(task), now=self._clock.now())
        wake = wake_for(gathered)
        if wake is None:
            self._schedule.at(task.ref, look_again_at(task))
            return
        await self.fire(task, wake.name, wake.why)

    async def fire(self, task: TaskView, name: str, why: str) -> bool:
        """Wakes a task for something that it waits for; False if it doesn't (any more), or not as it was seen."""
        write = fire(task, name, fields={"summary": why})
        if write is None:
            return False
        try:
            await commit(self._store, write, self._clock)
        except (ConflictError, NotFoundError) as error:
            log.info("not woken", task=str(task.ref), name=name, error=str(error))
            return False
        log.info("woken", task=str(task.ref), epoch=task.epoch, name=name)
        return True

    async def _phases(self, task: TaskView) -> dict[str, str | None]:
        phases: dict[str, str | None] = {}
        for wait in task.waiting_for:
            if wait.kind is not WaitKind.APPROVAL:
                continue
            ref = approval_ref(task.ref.namespace, wait.name)
            known = self._approval_phases.get(str(ref))
            if known is None:
                try:
                    known = approval_view(await get_retrying(self._store, ref, self._clock)).phase
                    self.approval_seen(ref, task.ref.name, known)
                except NotFoundError:
                    known = None  # deleted: the owner asks again
            phases[wait.name] = known
        return phases

    async def _pending(self, task: TaskView) -> None:
        now = self._clock.now()
        since = from_text(task.manifest["metadata"]["creationTimestamp"])
        if task.deadline is not None and now >= task.deadline:
            return  # whoever claims it ends it
        if now - since < PENDING_PATIENCE_SECONDS:
            self._schedule.at(task.ref, since + PENDING_PATIENCE_SECONDS)
            return
        summary = self._why_pending(task)
        if task.manifest["status"].get("summary") == summary:
            return
        try:
            await commit(self._store, remark(task, fields={"summary": summary}), self._clock)
        except (ConflictError, NotFoundError) as error:
            log.debug("no remark", task=str(task.ref), error=str(error))

    def _why_pending(self, task: TaskView) -> str:
        if task.desired is Desired.PAUSE:
            return "paused; it starts when spec.desired is Run"
        if task.journal is not None and not codec.known(task.journal.schema):
            needs = task.journal.schema
            return f"written by a newer version (schema {needs}, here {codec.SCHEMA}); wants a worker of that one"
        live, free = self._owners.workers(self._clock.boot())
        if not live:
            return "no worker is live; start some"
        return f"no worker has taken it yet ({live} live, {free} slots free)"

    async def _finished(self, task: TaskView) -> None:
        await self._withdraw(task)
        ttl = task.manifest["spec"].get("ttlSecondsAfterFinished")
        if ttl is None or task.finished_at is None or task.deleting:
            self._schedule.at(task.ref, None)
            return
        due = task.finished_at + ttl
        if self._clock.now() < due:
            self._schedule.at(task.ref, due)
            return
        try:
            await self._store.delete(task.ref, uid=task.uid)
            log.info("deleted after its TTL", task=str(task.ref))
        except NotFoundError:
            return
        except ContentRejectedError as error:  # admission: it has effects that are unresolved
            log.warning("not deleted after its TTL", task=str(task.ref), error=str(error))

    async def _withdraw(self, task: TaskView) -> None:
        """Closes what a finished task still asks people."""
        for ref in list(self._asking.get(str(task.ref), {}).values()):
            try:
                approval = approval_view(await get_retrying(self._store, ref, self._clock))
            except NotFoundError:
                continue
            if approval.request.run != task.run or approval.phase != PENDING:
                continue
            reason = f"the task ended ({task.phase.value})"
            decision = Decision(verdict=Verdict.WITHDRAWN, reason=reason)
            write = settle_approval(
                approval.ref,
                approval.uid,
                decision,
                votes=approval.count,
                now=self._clock.now(),
            )
            try:
                await commit(self._store, write, self._clock)
            except (ConflictError, NotFoundError) as error:
                log.info("not withdrawn", approval=str(approval.ref), error=str(error))
