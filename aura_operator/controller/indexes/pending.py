"""What is remembered of the pending tasks: since when each has been seen to be so. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from aura_operator.clock import Clock
from aura_operator.core.lifecycle import Phase
from aura_operator.store.resources import TASKS, Ref
from aura_operator.store.view import TaskView


class PendingTasks:
    """Since when each pending task has been seen to be so, in this epoch, by the controller's clock.

    Not since it was created, nor by what its last owner wrote: a task that was just woken isn't late, and the clocks of
    two machines are never compared.
    """

    resource = TASKS

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Ref, tuple[int, float]] = {}

    def seen(self, task: TaskView) -> None:
        if task.phase is not Phase.PENDING:
            self._since.pop(task.ref, None)
        elif self._since.get(task.ref, (None, 0.0))[0] != task.epoch:
            self._since[task.ref] = (task.epoch, self._clock.now())

    def gone(self, ref: Ref, uid: str) -> Sequence[Ref]:
        self._since.pop(ref, None)
        return ()

    def since(self, ref: Ref) -> float | None:
        known = self._since.get(ref)
        return known[1] if known else None
