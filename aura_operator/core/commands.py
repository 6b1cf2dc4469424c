"""What is wanted of a task at one moment: the value that decide.py returns and the runner carries out.

Work and waits have a stable `id`: the same want has the same id before and after an entry, a restart or a new owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, assert_never

from aura_operator.core.entries import Entry, Finished
from aura_operator.core.lifecycle import WaitKind


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModel:
    """Make the next model request. Outcome: ModelAnswered or ModelFailed."""

    keeps_outcome: ClassVar[bool] = False

    turn: int
    attempt: int

    @property
    def id(self) -> str:
        return f"model-{self.turn}-{self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Call a tool, after an intent where the plan needs one. Outcome: Result, or Decided(Stale).

    `keeps_outcome`: it may have an effect, so it isn't dropped when it is no longer wanted, but asked to stop, and what
    came of it is recorded.
    """

    call: int
    attempt: int
    keeps_outcome: bool

    @property
    def id(self) -> str:
        return f"call-{self.call}-{self.attempt}"


Work = CallModel | CallTool


class WaitReason(Enum):
    """Why a task waits, as its condition `Parked` says it."""

    APPROVAL_REQUIRED = "ApprovalRequired"
    IN_DOUBT = "InDoubt"
    QUESTION_ASKED = "QuestionAsked"
    PAUSED = "Paused"
    SLEEPING = "Sleeping"
    RETRY_LATER = "RetryLater"
    MODEL_RETRY = "ModelRetry"

    @property
    def kind(self) -> WaitKind:
        """What it waits for then."""
        match self:
            case WaitReason.APPROVAL_REQUIRED | WaitReason.IN_DOUBT:
                return WaitKind.APPROVAL
            case WaitReason.QUESTION_ASKED:
                return WaitKind.QUESTION
            case WaitReason.PAUSED:
                return WaitKind.PAUSE
            case WaitReason.SLEEPING | WaitReason.RETRY_LATER | WaitReason.MODEL_RETRY:
                return WaitKind.TIMER
        assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """Wait for something outside; absorb.py says when it came. The task may park on it until `until` (Unix seconds).

    Only a pause has no end. `call` is the call that it is about.
    """

    reason: WaitReason
    name: str
    until: float | None
    call: int | None = None

    @property
    def kind(self) -> WaitKind:
        return self.reason.kind

    @property
    def id(self) -> str:
        return f"await-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All that is wanted of a task. `notes` need nothing but being written down; then it is decided anew. `ending` is
    the entry that ends the journal: then nothing else is wanted."""

    notes: tuple[Entry, ...] = ()
    work: tuple[Work, ...] = ()
    waits: tuple[Await, ...] = ()
    ending: Finished | None = None
