"""Whether a parked task is to be woken, and when to look again: pure, from what was gathered of it and its waits.

Owns the checks; each says what it fires and why, or nothing. The first that applies counts. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aura_operator.core.approvals import judge
from aura_operator.core.instants import UnixSeconds
from aura_operator.core.lifecycle import Desired, Phase, WaitKind
from aura_operator.store.approvals import PENDING, ApprovalView
from aura_operator.store.task_fields import Wait
from aura_operator.store.view import TaskView


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A task as it was read, the phases of the approvals it waits for (None: gone), and the controller's clock in Unix
    seconds."""

    task: TaskView
    approvals: Mapping[str, str | None]
    now: UnixSeconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUp:
    """`name` out of `waitingFor` that is fired, and a sentence for the summary."""

    name: str
    why: str


def cancelled(seen: Gathered) -> WakeUp | None:
    if seen.task.desired is not Desired.CANCEL:
        return None
    return _any(seen, "woken to end: spec.desired is Cancel")


def expired(seen: Gathered) -> WakeUp | None:
    deadline = seen.task.deadline
    if deadline is None or seen.now < deadline:
        return None
    return _any(seen, "woken to end: its activeDeadlineSeconds passed")


def unpaused(seen: Gathered) -> WakeUp | None:
    if seen.task.desired is Desired.PAUSE:
        return None
    return _first(seen, lambda wait: wait.kind is WaitKind.PAUSE, "resumed")


def decided(seen: Gathered) -> WakeUp | None:
    def ended(wait: Wait) -> bool:
        return wait.kind.of_people and seen.approvals.get(wait.name, PENDING) != PENDING

    return _first(seen, ended, "woken: {name} was decided")


def due(seen: Gathered) -> WakeUp | None:
    def over(wait: Wait) -> bool:
        return wait.kind.by_clock and wait.until is not None and wait.until <= seen.now

    return _first(seen, over, "woken: {name} is over")


def steered(seen: Gathered) -> WakeUp | None:
    if len(seen.task.steering) <= seen.task.steering_consumed:
        return None
    return _first(seen, lambda wait: wait.kind.by_clock, "woken: there is a message for it")


CHECKS: tuple[Callable[[Gathered], WakeUp | None], ...] = (cancelled, expired, unpaused, decided, due, steered)


def wake_for(seen: Gathered) -> WakeUp | None:
    """What is to be fired now. One is enough: whoever claims the task looks at everything it waits for."""
    if seen.task.phase is not Phase.WAITING:
        return None
    return next((wake for check in CHECKS if (wake := check(seen)) is not None), None)


def look_again_at(task: TaskView) -> float | None:
    """When something about a parked task happens by itself (Unix seconds); approvals have times of their own."""
    times = [wait.until for wait in task.waiting_for if wait.kind.by_clock and wait.until is not None]
    if task.deadline is not None:
        times.append(task.deadline)
    return min(times, default=None)


def verdict_on(approval: ApprovalView, now: UnixSeconds) -> str | None:
    """How an approval ended, or ends now by its votes or the clock, settled or not; None while it is open."""
    if approval.phase != PENDING:
        return approval.phase
    decision = judge(approval.terms, approval.votes, now)
    return decision.verdict.value if decision is not None else None


def _any(seen: Gathered, why: str) -> WakeUp | None:
    return _first(seen, lambda _: True, why)


def _first(seen: Gathered, holds: Callable[[Wait], bool], why: str) -> WakeUp | None:
    for wait in seen.task.waiting_for:
        if wait.name not in seen.task.fired and holds(wait):
            return WakeUp(name=wait.name, why=why.format(name=wait.name))
    return None
