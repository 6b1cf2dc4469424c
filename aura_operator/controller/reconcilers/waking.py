"""Wakes parked tasks: when what they wait for has come, and when an approval is decided. Whether: wakes.py decides."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from cachetools import LRUCache

from aura_operator.clock import Clock
from aura_operator.controller.indexes.approvals import ApprovalIndex
from aura_operator.controller.indexes.parked import ParkedTasks
from aura_operator.controller.reconcilers.wakes import Gathered, WakeUp, look_again_at, verdict_on, wake_for
from aura_operator.core.instants import UnixSeconds
from aura_operator.core.lifecycle import Phase
from aura_operator.errors import NotFoundError
from aura_operator.store.approvals import PENDING, ApprovalView, approval_ref, approval_view
from aura_operator.store.commit import get_retrying, try_commit
from aura_operator.store.conditions import Condition, updated
from aura_operator.store.interface import Store
from aura_operator.store.resources import APPROVALS, TASKS, Ref
from aura_operator.store.task_fields import ConditionFields, StatusFields
from aura_operator.store.task_repairs import Awaiting, fire
from aura_operator.store.view import TaskView, task_ref

log = structlog.get_logger()

EARLY_KEPT = 10_000  # approvals whose task was woken before they were settled


class Waking:
    """Looks at a parked task and everything that it waits for."""

    resource = TASKS

    def __init__(self, store: Store, clock: Clock, approvals: ApprovalIndex) -> None:
        self._store = store
        self._clock = clock
        self._approvals = approvals

    async def reconcile(self, seen: TaskView) -> float | None:
        if seen.phase is not Phase.WAITING:
            return None
        gathered = Gathered(task=seen, approvals=await self._phases(seen), now=self._clock.now())
        wake = wake_for(gathered)
        if wake is None:
            return look_again_at(seen)
        await _fire(self._store, self._clock, seen, seen.conditions, wake)
        return None

    async def _phases(self, task: TaskView) -> dict[str, str | None]:
        return {
            wait.name: await self._phase(approval_ref(task.ref.namespace, wait.name))
            for wait in task.waiting_for
            if wait.kind.of_people
        }

    async def _phase(self, ref: Ref) -> str | None:
        """What is known of an approval, else what a read shows; None if there is none."""
        known = self._approvals.phase(ref)
        if known is not None:
            return known
        try:
            approval = approval_view(await get_retrying(self._store, ref, self._clock))
        except NotFoundError:
            return None
        self._approvals.seen(approval)
        return approval.phase


class WakingByApproval:
    """Looks at an approval, and wakes its task as soon as its votes or the clock decide it.

    That doesn't wait until the approval is settled: a task that wakes before that looks at the votes itself. Where it
    can't be settled for long, the task has parked again for it, and isn't woken a second time before it is.
    """

    resource = APPROVALS

    def __init__(self, store: Store, clock: Clock, parked: ParkedTasks) -> None:
        self._store = store
        self._clock = clock
        self._parked = parked
        self._woken_early: LRUCache[str, int] = LRUCache(EARLY_KEPT)  # by the approval's uid, the epoch of its task

    async def reconcile(self, seen: ApprovalView) -> float | None:
        verdict = verdict_on(seen, self._clock.now())
        if verdict is None:
            return seen.terms.expires_at
        ref = task_ref(seen.ref.namespace, seen.request.task)
        wake = WakeUp(name=seen.ref.name, why=f"woken: {seen.ref.name} is {verdict}")
        parked = self._parked.get(ref)
        if parked is None or parked.run != seen.request.run:
            return None  # as far as is known: once it is seen to be parked, Waking looks at all that it waits for
        early = seen.phase == PENDING
        if early and self._woken_early.get(seen.uid, parked.epoch) != parked.epoch:
            return None
        if await _fire(self._store, self._clock, parked, parked.conditions, wake) and early:
            self._woken_early[seen.uid] = parked.epoch
        return None


def woken(conditions: Sequence[ConditionFields], wake: WakeUp, now: UnixSeconds) -> StatusFields:
    """What the status says of a task that was woken."""
    parked = Condition(type="Parked", holds=False, reason="Woken", message=wake.why)
    return {"summary": wake.why, "conditions": updated(conditions, parked, now=now)}


async def _fire(
    store: Store, clock: Clock, task: Awaiting, conditions: Sequence[ConditionFields], wake: WakeUp
) -> bool:
    """False if the task doesn't wait for that (any more), or not as it was seen."""
    write = fire(task, wake.name, fields=woken(conditions, wake, clock.now()))
    if write is None or await try_commit(store, write, clock) is None:
        return False
    log.info("woken", task=str(task.ref), name=wake.name)
    return True
