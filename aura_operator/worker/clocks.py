"""Whose clock counts for a task that was woken. Owns the one comparison of two clocks."""

from __future__ import annotations

from aura_operator.core.lifecycle import Desired
from aura_operator.store.view import TaskView


def clock_lead_seconds(task: TaskView, now: float) -> float:
    """By how much the controller's clock, which found a timer due, is ahead of a worker's that says `now`."""
    if len(task.steering) > task.steering_consumed or task.desired is not Desired.RUN:
        return 0.0  # woken for another reason, perhaps long before the timer's end
    due = [wait.until for wait in task.waiting_for if wait.kind.by_clock and wait.name in task.fired]
    return max(0.0, max((until for until in due if until is not None), default=now) - now)
