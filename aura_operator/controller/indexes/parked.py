"""What is remembered of the parked tasks: enough to wake one without reading it. Reads and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aura_operator.core.lifecycle import Phase
from aura_operator.store.resources import TASKS, Ref
from aura_operator.store.task_fields import ConditionFields, Wait
from aura_operator.store.view import TaskView


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedTask:
    """`conditions` are without Parked, which a wake-up writes anew."""

    ref: Ref
    uid: str
    run: str
    epoch: int
    phase: Phase
    waiting_for: tuple[Wait, ...]
    fired: tuple[str, ...]
    conditions: tuple[ConditionFields, ...]


class ParkedTasks:
    """Parked tasks by reference, as last seen."""

    resource = TASKS

    def __init__(self) -> None:
        self._tasks: dict[Ref, ParkedTask] = {}

    def seen(self, task: TaskView) -> None:
        if task.phase is not Phase.WAITING:
            self._tasks.pop(task.ref, None)
            return
        self._tasks[task.ref] = ParkedTask(
            ref=task.ref,
            uid=task.uid,
            run=task.run,
            epoch=task.epoch,
            phase=task.phase,
            waiting_for=task.waiting_for,
            fired=task.fired,
            conditions=tuple(item for item in task.conditions if item["type"] != "Parked"),
        )

    def gone(self, ref: Ref, uid: str) -> Sequence[Ref]:
        self._tasks.pop(ref, None)
        return ()

    def get(self, ref: Ref) -> ParkedTask | None:
        return self._tasks.get(ref)
