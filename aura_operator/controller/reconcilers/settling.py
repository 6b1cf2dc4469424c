"""Settles approvals: writes down how one ended, and how many have voted so far. The rules are in core/approvals.py."""

from __future__ import annotations

import structlog

from aura_operator.clock import Clock
from aura_operator.controller.indexes.approvals import ApprovalIndex
from aura_operator.core.approvals import Decision, judge
from aura_operator.core.entries import Verdict
from aura_operator.core.instants import UnixSeconds
from aura_operator.store.approval_writes import count_votes, settle_approval
from aura_operator.store.approvals import PENDING, ApprovalView, approval_view
from aura_operator.store.commit import try_commit
from aura_operator.store.events import EventRecorder, EventType
from aura_operator.store.interface import Store
from aura_operator.store.resources import APPROVALS

log = structlog.get_logger()


class Settling:
    """Judges the votes on an approval, or their absence at its end."""

    resource = APPROVALS

    def __init__(self, store: Store, clock: Clock, approvals: ApprovalIndex, events: EventRecorder) -> None:
        self._store = store
        self._clock = clock
        self._approvals = approvals
        self._events = events

    async def reconcile(self, seen: ApprovalView) -> float | None:
        if seen.phase != PENDING:
            return None
        now = self._clock.now()
        decision = judge(seen.terms, seen.votes, now)
        if decision is None:
            await self._count(seen)
            return seen.terms.expires_at
        # A vote that came in between stops the write; then both are judged by looking again.
        return None if await self._settle(seen, decision, now) else now

    async def _count(self, approval: ApprovalView) -> None:
        """Shows the votes so far; the status of a new object starts empty, whatever was sent with it."""
        if approval.votes_shown != approval.count:
            await try_commit(self._store, count_votes(approval.ref, approval.uid, approval.count), self._clock)

    async def _settle(self, approval: ApprovalView, decision: Decision, now: UnixSeconds) -> bool:
        write = settle_approval(
            approval.ref, approval.uid, decision, votes=approval.count, now=now, judged=approval.manifest
        )
        manifest = await try_commit(self._store, write, self._clock)
        if manifest is None:
            return False
        self._approvals.seen(approval_view(manifest))
        log.info("approval settled", approval=str(approval.ref), verdict=decision.verdict.value, by=list(decision.by))
        event_type = EventType.NORMAL if decision.verdict is Verdict.APPROVED else EventType.WARNING
        await self._events.record(
            manifest, f"Approval{decision.verdict.value}", note_on(approval, decision), event_type=event_type
        )
        return True


def note_on(approval: ApprovalView, decision: Decision) -> str:
    """The note of the Event about a decision."""
    choice = f" ({decision.choice.value})" if decision.choice else ""
    who = ", ".join(decision.by) or "nobody"
    return f"{approval.request.tool}: {decision.verdict.value}{choice} by {who}"
