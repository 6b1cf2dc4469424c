"""The kinds of journal entries, as values. One class a kind; `codec.py` turns them into lines and back.

Times are Unix seconds at the journal's resolution (milliseconds). Owns the shapes, decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from aura_operator.core.effects import Effect, OnInDoubt
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.transcript import Payload


class Proof(Enum):
    """How it is known that the last owner's part has ended."""

    RELEASED = "Released"  # it said so itself
    CONTAINER_RESTARTED = "ContainerRestarted"
    LEASE_EXPIRED = "LeaseExpired"

    @property
    def is_death(self) -> bool:
        return self is not Proof.RELEASED


class RequestKind(Enum):
    """What a person is asked."""

    TOOL_CALL = "ToolCall"
    IN_DOUBT = "InDoubt"
    QUESTION = "Question"


class Verdict(Enum):
    """How an approval ended. Stale: it was granted, but for a tool that has changed since; it is asked again."""

    APPROVED = "Approved"
    DENIED = "Denied"
    EXPIRED = "Expired"
    WITHDRAWN = "Withdrawn"
    STALE = "Stale"


class Choice(Enum):
    """What a person says of an effect in doubt."""

    DONE = "Done"
    RETRY = "Retry"
    ABORT = "Abort"


class Outcome(Enum):
    """What is known of a tool call."""

    OK = "ok"
    ERROR = "error"  # it ran and failed, or failed to be a valid call: known all the same
    NOT_SENT = "not-sent"  # certain that the server never had it
    UNKNOWN = "unknown"  # may or may not have happened


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the model calls cost."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """One tool call of a model response, with the policy that holds for it from here on.

    The policy is written down with the response, so that neither a crash nor a server that changes its mind about
    its own tool changes what a crash means. `digest` is over the bytes of the arguments text; `refused` says why the
    call can't be made at all; `timer_seconds` makes it the built-in sleep.
    """

    call: int
    part: int
    tool: str
    effect: Effect = Effect.ONCE
    declared: bool = True
    approval: bool = False
    timeout_seconds: float = 60.0
    on_in_doubt: OnInDoubt = OnInDoubt.ASK
    sensitive: bool = False
    digest: str = ""
    schema: str = ""
    refused: str | None = None
    timer_seconds: float | None = None

    @property
    def needs_intent(self) -> bool:
        """Whether the journal must hold the intent before the call is sent: all but trusted, unapproved reads."""
        return self.effect is not Effect.READ or self.approval or not self.declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    at: float
    epoch: int
    worker: str
    incarnation: str
    revision: str
    proof: Proof | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered:
    at: float
    started: float
    payload: Payload
    calls: tuple[CallPlan, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """A model call failed. `retry_at` None: trying again can't help."""

    at: float
    reason: str
    message: str
    retry_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """From here on the call may have happened. `ask` names the approval it uses."""

    at: float
    call: int
    key: str
    ask: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    at: float
    call: int
    outcome: Outcome
    payload: Payload
    started: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """A person is asked. `schema` is the digest of the tool's schema that the person sees."""

    at: float
    call: int
    ask: int
    kind: RequestKind
    expires_at: float
    schema: str = ""
    not_before: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    at: float
    call: int
    ask: int
    verdict: Verdict
    reason: str
    by: tuple[str, ...] = ()
    choice: Choice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """A timer ended. `interrupted`: by steering, before its time."""

    at: float
    call: int
    interrupted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldInDoubt:
    """The model is told that a call may or may not have happened; the effect stays unresolved."""

    at: float
    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringConsumed:
    at: float
    position: int
    text: str
    by: str


class Control(Enum):
    """What the task was told to do; `Expired`: its active deadline passed."""

    RUN = Desired.RUN.value
    PAUSE = Desired.PAUSE.value
    CANCEL = Desired.CANCEL.value
    EXPIRED = "Expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled:
    at: float
    control: Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    at: float
    phase: Phase
    reason: str
    message: str = ""


Entry = (
    Claimed
    | ModelAnswered
    | ModelFailed
    | Intent
    | Result
    | Requested
    | Decided
    | Slept
    | ToldInDoubt
    | SteeringConsumed
    | Controlled
    | Finished
)
