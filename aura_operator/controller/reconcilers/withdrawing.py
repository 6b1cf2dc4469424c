"""Withdraws what a task that has ended still asks people."""

from __future__ import annotations

from aura_operator.clock import Clock
from aura_operator.controller.indexes.approvals import ApprovalIndex
from aura_operator.core.approvals import Decision
from aura_operator.core.entries import Verdict
from aura_operator.errors import NotFoundError
from aura_operator.store.approval_writes import settle_approval
from aura_operator.store.approvals import PENDING, ApprovalView, approval_view
from aura_operator.store.commit import get_retrying, try_commit
from aura_operator.store.interface import Store
from aura_operator.store.resources import TASKS
from aura_operator.store.view import TaskView


class Withdrawing:
    """Closes the open approvals of a task that has ended."""

    resource = TASKS

    def __init__(self, store: Store, clock: Clock, approvals: ApprovalIndex) -> None:
        self._store = store
        self._clock = clock
        self._approvals = approvals

    async def reconcile(self, seen: TaskView) -> float | None:
        if not seen.phase.terminal:
            return None
        for ref in self._approvals.open_of(seen.ref):
            try:
                approval = approval_view(await get_retrying(self._store, ref, self._clock))
            except NotFoundError:
                continue
            decision = withdrawal(seen, approval)
            if decision is None:
                continue
            write = settle_approval(ref, approval.uid, decision, votes=approval.count, now=self._clock.now())
            manifest = await try_commit(self._store, write, self._clock)
            if manifest is not None:
                self._approvals.seen(approval_view(manifest))
        return None


def withdrawal(task: TaskView, approval: ApprovalView) -> Decision | None:
    """How an approval ends with its task; None if it is another run's, or has ended by itself."""
    if not task.phase.terminal or approval.request.run != task.run or approval.phase != PENDING:
        return None
    return Decision(verdict=Verdict.WITHDRAWN, reason=f"the task ended ({task.phase.value})")
