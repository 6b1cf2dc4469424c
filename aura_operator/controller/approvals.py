"""Reconciles one AuraApproval: judges its votes, settles it, and wakes its task. Owns no rule: those are core's."""

from __future__ import annotations

import asyncio

import structlog

from aura_operator.clock import Clock
from aura_operator.controller.schedule import Schedule
from aura_operator.controller.tasks import TaskReconciler
from aura_operator.core.approvals import Decision, judge
from aura_operator.core.entries import Verdict
from aura_operator.errors import ConflictError, NotFoundError
from aura_operator.store.approval_writes import count_votes, settle_approval
from aura_operator.store.approvals import PENDING, ApprovalView, approval_view
from aura_operator.store.commit import commit, get_retrying
from aura_operator.store.events import EventRecorder, EventType
from aura_operator.store.interface import Store
from aura_operator.store.resources import Ref
from aura_operator.store.view import task_ref

log = structlog.get_logger()


class ApprovalReconciler:
    """Handles approvals one at a time."""

    def __init__(
        self, store: Store, clock: Clock, tasks: TaskReconciler, schedule: Schedule, events: EventRecorder
    ) -> None:
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._schedule = schedule
        self._events = events

    async def look(self, ref: Ref) -> None:
        """Reads an approval and reconciles it."""
        try:
            manifest = await get_retrying(self._store, ref, self._clock)
        except NotFoundError:
            self._schedule.at(ref, None)
            return
        await self.reconcile(approval_view(manifest))

    def gone(self, ref: Ref, task: str) -> None:
        self._schedule.at(ref, None)
        self._tasks.approval_gone(ref, task)

    async def reconcile(self, approval: ApprovalView) -> None:
        """Settles the approval if its votes or the clock decide it, and sees to it that its task knows."""
        if approval.phase == PENDING:
            decision = judge(approval.terms, approval.votes, self._clock.now())
            if decision is None:
                self._tasks.approval_seen(approval.ref, approval.request.task, PENDING)
                self._schedule.at(approval.ref, approval.terms.expires_at)
                await self._count(approval)
                return
            # Side by side: a task that wakes before the other write lands looks again, and waits on if it must.
            settled, _ = await asyncio.gather(
                self._settle(approval, decision), self._wake(approval, decision.verdict.value)
            )
            if settled is None:  # a vote came in between, or it was settled already: both are seen by looking again
                self._schedule.at(approval.ref, self._clock.now())
                return
            approval = settled
        self._schedule.at(approval.ref, None)
        self._tasks.approval_seen(approval.ref, approval.request.task, approval.phase)
        await self._wake(approval, approval.phase)

    async def _count(self, approval: ApprovalView) -> None:
        """Shows the votes so far; the status of a new object starts empty, whatever was sent with it."""
        if approval.manifest.get("status", {}).get("votes") == approval.count:
            return
        try:
            await commit(self._store, count_votes(approval.ref, approval.uid, approval.count), self._clock)
        except (ConflictError, NotFoundError) as error:
            log.debug("votes not counted", approval=str(approval.ref), error=str(error))

    async def _settle(self, approval: ApprovalView, decision: Decision) -> ApprovalView | None:
        write = settle_approval(
            approval.ref,
            approval.uid,
            decision,
            votes=approval.count,
            now=self._clock.now(),
            judged=approval.manifest,
        )
        try:
            manifest = await commit(self._store, write, self._clock)
        except (ConflictError, NotFoundError) as error:
            log.info("not settled", approval=str(approval.ref), error=str(error))
            return None
        who = ", ".join(decision.by) or "nobody"
        log.info("approval settled", approval=str(approval.ref), verdict=decision.verdict.value, by=list(decision.by))
        event_type = EventType.NORMAL if decision.verdict is Verdict.APPROVED else EventType.WARNING
        choice = f" ({decision.choice.value})" if decision.choice else ""
        note = f"{approval.request.tool}: {decision.verdict.value}{choice} by {who}"
        await self._events.record(manifest, f"Approval{decision.verdict.value}", note, event_type=event_type)
        return approval_view(manifest)

    async def _wake(self, approval: ApprovalView, phase: str) -> None:
        ref = task_ref(approval.ref.namespace, approval.request.task)
        why = f"woken: {approval.ref.name} is {phase}"
        await self._tasks.decided(ref, approval.request.run, approval.ref.name, why)
