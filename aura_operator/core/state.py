"""What a journal means: the state of a task after its entries, and of each open call.

Owns the values. fold.py makes them, absorb.py and decide.py read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from aura_operator.core.entries import CallPlan, Control, Finished, Requested, Usage
from aura_operator.core.transcript import Item, Payload, ToolReturn, UserInput


class Stage(Enum):
    """How far one tool call has come."""

    PLANNED = "planned"  # nothing was asked or done
    REQUESTED = "requested"  # a person is asked for permission
    CLEARED = "cleared"  # may be started: permission is there, or none is needed again
    STARTED = "started"  # the intent is in the journal, no outcome is known, this epoch's owner is at it
    IN_DOUBT = "in doubt"  # may or may not have happened, and nobody was asked yet
    ASKED = "asked"  # a person is asked what became of it
    CLOSED = "closed"  # the model's answer to it is known


@dataclass(frozen=True, slots=True, kw_only=True)
class CallState:
    """One call of the current turn.

    `attempts` counts intents, `asks` approval requests. `not_before`: the earliest time (Unix seconds) at which a call
    in doubt may be made again, since the old one may still be under way until then.
    """

    plan: CallPlan
    planned_at: float
    stage: Stage = Stage.PLANNED
    attempts: int = 0
    asks: int = 0
    started_at: float | None = None
    requested: Requested | None = None
    permitted_ask: int | None = None
    approved_schema: str = ""
    not_before: float | None = None
    returned: ToolReturn | None = None

    @property
    def due_at(self) -> float | None:
        """When the built-in sleep ends: counted from the model's response, so a restart changes nothing."""
        return None if self.plan.timer_seconds is None else self.planned_at + self.plan.timer_seconds


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
    """A task, as its journal tells it."""

    task: str
    run: str
    transcript: tuple[Item, ...]
    epoch: int = 0
    revision: str = ""
    recoveries: int = 0
    turns: int = 0
    steps: int = 0
    last_call: int = 0
    calls: dict[int, CallState] = field(default_factory=dict)
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


def initial(*, task: str, run: str, user_input: str) -> TaskState:
    """A task before its first entry."""
    return TaskState(task=task, run=run, transcript=(UserInput(text=user_input),))


def approval_name(task: str, call: int, ask: int) -> str:
    """The name of the AuraApproval for the given ask (counted from 0) of a call: `<task>-<call>[-r<ask>]`.

    No two tasks share a name: a number alone would make ask 2 of call 2 of `fix` the same as call 2 of `fix-2`.
    """
    return f"{task}-{call}" if ask == 0 else f"{task}-{call}-r{ask}"


def idempotency_key(run: str, call: int, digest: str) -> str:
    """The same over all attempts at a call, a person's Retry included: `<run>/<call>/<arguments digest>`."""
    return f"{run}/{call}/{digest.removeprefix('sha256:')}"
