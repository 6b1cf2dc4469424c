"""The kinds of journal entries, as values. One class a kind; `codec.py` turns them into lines and back.

They are stored for ever. `at` is when the entry was recorded; times are Unix seconds at the journal's resolution
(milliseconds). Owns the shapes, decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.plan import CallPlan
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


class Control(Enum):
    """What the task was told to do; `Expired`: its active deadline passed."""

    RUN = Desired.RUN.value
    PAUSE = Desired.PAUSE.value
    CANCEL = Desired.CANCEL.value
    EXPIRED = "Expired"


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
class Claimed:
    """A worker took the task: everything from here to the next one is its epoch's.

    `worker` is the name of its Lease, `incarnation` one life of its process, `revision` the name of the agent's pinned
    revision ("" where the task can only be ended). `proof` says how it is known that the last owner's part has ended;
    None at the first claim. An intent of an earlier epoch without an outcome is in doubt from here on.
    """

    at: float
    epoch: int
    worker: str
    incarnation: str
    revision: str
    proof: Proof | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered:
    """The model answered in full. `started` is when the request was sent, `payload` the answer as JSON text
    `{"fmt": …, "parts": […]}`, `calls` the plans of the calls that it asks for, numbered on from the task's last call;
    without any, it is the final answer.
    """

    at: float
    started: float
    payload: Payload
    calls: tuple[CallPlan, ...] = ()
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """A model call failed. `reason` is a CamelCase word, `message` a sentence with the remedy; `retry_at` None: trying
    again can't help.
    """

    at: float
    reason: str
    message: str
    retry_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """From here on the call may have happened. `key` is its idempotency key, `ask` names the approval that it uses
    (None where it needs none). It is durable before the first byte of the call is sent.
    """

    at: float
    call: int
    key: str
    ask: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of an attempt. `payload` is the text for the model. `started`: when a call without an intent was sent;
    one with an intent has it there.
    """

    at: float
    call: int
    outcome: Outcome
    payload: Payload
    started: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """A person is asked. `ask` counts the requests of this call from 0, `expires_at` is in whole seconds, as the
    approval says it. `schema` is the digest of the tool's schema that the person sees ("" unless kind is ToolCall);
    `not_before` is until when a call in doubt may still be on its way.
    """

    at: float
    call: int
    ask: int
    kind: RequestKind
    expires_at: float
    schema: str = ""
    not_before: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """How a request ended. `by`: who voted that way; `reason`: their words, or what became of it otherwise. `choice` is
    of an effect in doubt, `answer` of a question. `schema`: where the verdict is Stale, the digest of the tool's schema
    as it is now ("" if it is gone).
    """

    at: float
    call: int
    ask: int
    verdict: Verdict
    reason: str
    by: tuple[str, ...] = ()
    choice: Choice | None = None
    answer: str | None = None
    schema: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """A timer of the built-in sleep ended. `interrupted`: by steering, before its time."""

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
    """A message of `spec.steering` goes into the transcript. `position` counts from 0; `by` is who sent it."""

    at: float
    position: int
    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Controlled:
    """What the task was told to do has changed, or its deadline has passed; it holds until the next such entry."""

    at: float
    control: Control


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end: no entry follows. `phase` is terminal, `reason` a CamelCase word, `message` a sentence or ""."""

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
