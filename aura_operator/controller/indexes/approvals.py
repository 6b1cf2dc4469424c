"""What is remembered of all approvals: how each stands, and which are open of a task. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aura_operator.store.approvals import PENDING, ApprovalView
from aura_operator.store.resources import APPROVALS, Ref
from aura_operator.store.view import task_ref


@dataclass(frozen=True, slots=True, kw_only=True)
class _Approval:
    task: Ref
    phase: str


class ApprovalIndex:
    """Approvals by reference, and the open ones by task."""

    resource = APPROVALS

    def __init__(self) -> None:
        self._approvals: dict[Ref, _Approval] = {}
        self._open: dict[Ref, set[Ref]] = {}

    def seen(self, approval: ApprovalView) -> None:
        task = task_ref(approval.ref.namespace, approval.request.task)
        self._approvals[approval.ref] = _Approval(task=task, phase=approval.phase)
        if approval.phase == PENDING:
            self._open.setdefault(task, set()).add(approval.ref)
        else:
            self._close(task, approval.ref)

    def gone(self, ref: Ref, uid: str) -> Sequence[Ref]:
        """Its task is to be looked at: if it still waits for the approval, its owner has to ask again."""
        known = self._approvals.pop(ref, None)
        if known is None:
            return ()
        self._close(known.task, ref)
        return (known.task,)

    def phase(self, ref: Ref) -> str | None:
        """Pending or the text of a Verdict; None if nothing is known of it."""
        known = self._approvals.get(ref)
        return known.phase if known else None

    def open_of(self, task: Ref) -> list[Ref]:
        return sorted(self._open.get(task, ()), key=str)

    def _close(self, task: Ref, ref: Ref) -> None:
        still_open = self._open.get(task, set())
        still_open.discard(ref)
        if not still_open:
            self._open.pop(task, None)
