"""What a journal means: the state of a task after its entries.

Owns the values. fold.py makes them, absorb.py and decide.py read them; the life of a single call is in calls.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aura_operator.core.calls import CallState, Stage
from aura_operator.core.entries import Control, Finished, Usage
from aura_operator.core.transcript import Item, Payload, UserInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """An effect that may or may not have happened."""

    call: int
    tool: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the task can only end now."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrouble:
    """Model calls that failed in a row. `retry_at` None: trying again can't help."""

    failures: int
    reason: str
    message: str
    retry_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """A task, as its journal tells it. `calls` are those of the current turn, by number."""

    task: str
    run: str
    transcript: tuple[Item, ...]
    epoch: int = 0
    revision: str = ""
    recoveries: int = 0
    turns: int = 0
    steps: int = 0
    last_call: int = 0
    calls: Mapping[int, CallState] = field(default_factory=dict)
    answer: Payload | None = None
    trouble: ModelTrouble | None = None
    unresolved: tuple[Unresolved, ...] = ()
    usage: Usage = field(default_factory=Usage)
    steering_consumed: int = 0
    control: Control = Control.RUN
    failure: Failure | None = None
    finished: Finished | None = None

    def call(self, number: int) -> CallState:
        return self.calls[number]

    @property
    def open_calls(self) -> list[CallState]:
        """The calls of this turn whose answer isn't known yet, in call order."""
        return [call for call in self.calls.values() if call.stage is not Stage.CLOSED]

    @property
    def items(self) -> tuple[Item, ...]:
        """All that the state refers to: the transcript, and what calls of a turn that is still open returned."""
        if not self.open_calls:
            return self.transcript
        return (*self.transcript, *(call.returned for call in self.calls.values() if call.returned is not None))


def initial(*, task: str, run: str, user_input: str) -> TaskState:
    """A task before its first entry."""
    return TaskState(task=task, run=run, transcript=(UserInput(text=user_input),))
