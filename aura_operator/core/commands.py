"""What is wanted of a task at one moment: the values that decide.py returns and the runner starts, keeps or stops.

Each has a stable `id`: the same want has the same id before and after an entry, a restart or a new owner.
"""

from __future__ import annotations

from dataclasses import dataclass

from aura_operator.core.entries import RequestKind
from aura_operator.core.lifecycle import Phase, WaitKind


@dataclass(frozen=True, slots=True, kw_only=True)
class CallModel:
    """Make the next model request. Outcome: ModelAnswered or ModelFailed."""

    turn: int
    attempt: int

    @property
    def id(self) -> str:
        return f"model-{self.turn}-{self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTool:
    """Call a tool, after an intent where the plan needs one. Outcome: Result, or Decided(Stale)."""

    call: int
    attempt: int

    @property
    def id(self) -> str:
        return f"call-{self.call}-{self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Write down that a person is asked. Outcome, at once: Requested."""

    call: int
    ask: int
    kind: RequestKind
    not_before: float | None

    @property
    def id(self) -> str:
        return f"ask-{self.call}-{self.ask}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TellInDoubt:
    """Tell the model that a call may or may not have happened. Outcome, at once: ToldInDoubt."""

    call: int

    @property
    def id(self) -> str:
        return f"tell-{self.call}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """Wait for something outside; absorb.py says when it came. The task may park on it until `until` (Unix seconds)."""

    kind: WaitKind
    name: str
    until: float | None
    call: int | None = None

    @property
    def id(self) -> str:
        return f"await-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """End the task. Outcome, at once: Finished."""

    phase: Phase
    reason: str
    message: str

    @property
    def id(self) -> str:
        return "finish"


Command = CallModel | CallTool | Ask | TellInDoubt | Await | Finish
