"""The life of one tool call: its stages, what moves it from one to the next, and every move there is.

Owns the table. The promise rests on it: fold.py moves calls by it alone, docs/states.md is drawn from it, and an entry
for which it has no row is refused. Which cause an entry is for a call is recovery.py's (by effect) and fold.py's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from aura_operator.core.entries import Requested
from aura_operator.core.plan import CallPlan
from aura_operator.core.transcript import ToolReturn
from aura_operator.errors import DamagedJournalError


class Stage(Enum):
    """How far one tool call has come."""

    PLANNED = "planned"  # nothing was asked or done
    REQUESTED = "requested"  # a person is asked for permission
    CLEARED = "cleared"  # may be started: permission is there, or none is needed again
    STARTED = "started"  # the intent is in the journal, no outcome is known, this epoch's owner is at it
    IN_DOUBT = "in doubt"  # may or may not have happened, and nobody was asked yet
    SETTLING = "settling"  # a person is asked what became of it
    QUESTIONED = "questioned"  # a person is asked what the model wants to know
    CLOSED = "closed"  # the model's answer to it is known


class Cause(Enum):
    """What moves a call."""

    REFUSED = "refused when planned"
    PERMISSION_ASKED = "permission asked"
    QUESTION_ASKED = "question asked"
    APPROVED = "approved"
    NOT_APPROVED = "denied, expired or withdrawn"
    STALE = "approved, but the tool has changed"
    STALE_TOO_OFTEN = "changed each time it was approved"
    ANSWERED = "answered, or nobody did"
    INTENT = "intent"
    OUTCOME_KNOWN = "outcome known"
    ANSWER_LOST = "answer lost"
    ANSWER_LOST_REPEATABLE = "answer lost, to be repeated"
    REPETITION_NOT_SENT = "repetition not sent"
    OWNER_LOST = "owner lost"
    OWNER_LOST_REPEATABLE = "owner lost, to be repeated"
    DOUBT_ASKED = "asked what became of it"
    DOUBT_TOLD = "model told of the doubt"
    SETTLED_DONE = "settled: Done"
    SETTLED_RETRY = "settled: Retry"
    SETTLED_ABORT = "settled: Abort, or nobody did"
    SLEPT = "time over"


TRANSITIONS: dict[tuple[Stage, Cause], Stage] = {
    (Stage.PLANNED, Cause.REFUSED): Stage.CLOSED,
    (Stage.PLANNED, Cause.SLEPT): Stage.CLOSED,
    (Stage.PLANNED, Cause.QUESTION_ASKED): Stage.QUESTIONED,
    (Stage.QUESTIONED, Cause.ANSWERED): Stage.CLOSED,
    (Stage.PLANNED, Cause.PERMISSION_ASKED): Stage.REQUESTED,
    (Stage.REQUESTED, Cause.APPROVED): Stage.CLEARED,
    (Stage.REQUESTED, Cause.NOT_APPROVED): Stage.CLOSED,
    (Stage.REQUESTED, Cause.STALE): Stage.PLANNED,
    (Stage.REQUESTED, Cause.STALE_TOO_OFTEN): Stage.CLOSED,
    (Stage.CLEARED, Cause.STALE): Stage.PLANNED,
    (Stage.CLEARED, Cause.STALE_TOO_OFTEN): Stage.CLOSED,
    (Stage.PLANNED, Cause.INTENT): Stage.STARTED,
    (Stage.CLEARED, Cause.INTENT): Stage.STARTED,
    (Stage.PLANNED, Cause.OUTCOME_KNOWN): Stage.CLOSED,  # a read without intent, or a call that was not sent
    (Stage.CLEARED, Cause.OUTCOME_KNOWN): Stage.CLOSED,
    (Stage.STARTED, Cause.OUTCOME_KNOWN): Stage.CLOSED,
    (Stage.STARTED, Cause.STALE): Stage.PLANNED,  # its intent went out with the claim, and was not acted on
    (Stage.STARTED, Cause.STALE_TOO_OFTEN): Stage.CLOSED,
    (Stage.STARTED, Cause.ANSWER_LOST): Stage.IN_DOUBT,
    (Stage.STARTED, Cause.ANSWER_LOST_REPEATABLE): Stage.CLEARED,
    (Stage.CLEARED, Cause.REPETITION_NOT_SENT): Stage.IN_DOUBT,
    (Stage.STARTED, Cause.REPETITION_NOT_SENT): Stage.IN_DOUBT,
    (Stage.STARTED, Cause.OWNER_LOST): Stage.IN_DOUBT,
    (Stage.STARTED, Cause.OWNER_LOST_REPEATABLE): Stage.CLEARED,
    (Stage.IN_DOUBT, Cause.DOUBT_ASKED): Stage.SETTLING,
    (Stage.IN_DOUBT, Cause.DOUBT_TOLD): Stage.CLOSED,
    (Stage.SETTLING, Cause.SETTLED_DONE): Stage.CLOSED,
    (Stage.SETTLING, Cause.SETTLED_RETRY): Stage.CLEARED,
    (Stage.SETTLING, Cause.SETTLED_ABORT): Stage.CLOSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallState:
    """One call of the current turn. Times in Unix seconds.

    `attempts` counts intents, `asks` the requests to people. `schema` is the digest of the tool's schema as last seen,
    `permitted_ask` the ask whose approval allows the next attempt, `approved_schema` the schema that the person saw.
    `not_before`: the earliest time at which a call in doubt may be made again, since the old one may still be under
    way until then. `returned` is what the model is told, once it is closed.
    """

    plan: CallPlan
    planned_at: float
    stage: Stage = Stage.PLANNED
    attempts: int = 0
    asks: int = 0
    schema: str = ""
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


def next_stage(call: CallState, cause: Cause) -> Stage:
    """The stage after a cause. Raises DamagedJournalError where the table has no such row; nothing was changed."""
    stage = TRANSITIONS.get((call.stage, cause))
    if stage is None:
        raise DamagedJournalError(
            f"an entry doesn't fit call {call.plan.call}: {cause.value}, and it is {call.stage.value}"
        )
    return stage


def mermaid() -> str:
    """The table as a Mermaid state diagram."""
    ids = {stage: stage.name.title().replace("_", "") for stage in Stage}
    lines = ["stateDiagram-v2", f"  [*] --> {ids[Stage.PLANNED]}"]
    # Mermaid takes a second colon in a label for the beginning of another one.
    lines += [
        f"  {ids[source]} --> {ids[target]}: {cause.value.replace(': ', ', ')}"
        for (source, cause), target in TRANSITIONS.items()
    ]
    lines.append(f"  {ids[Stage.CLOSED]} --> [*]")
    return "\n".join(lines)
