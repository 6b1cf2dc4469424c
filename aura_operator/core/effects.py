"""What a tool call does to the world, and what follows from it: effect classes and the rules that assign them.

Owns the classification only; what a crash means for each class is in recovery.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase


class Effect(Enum):
    """What may be done when nobody knows whether a call happened."""

    READ = "Read"  # call it again
    IDEMPOTENT = "Idempotent"  # call it again with the same key
    ONCE = "Once"  # never without a person or a lookup


class OnInDoubt(Enum):
    """Who decides about a `Once` call that may or may not have happened."""

    ASK = "Ask"
    TELL_MODEL = "TellModel"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHints:
    """What a tool server says of its own tool (MCP annotations); None where it says nothing."""

    read_only: bool | None = None
    idempotent: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """One element of an agent's `spec.tools`: what its author declares of the tools whose name matches the glob."""

    match: str
    effect: Effect | None = None
    approval_required: bool | None = None
    timeout_seconds: float | None = None
    on_in_doubt: OnInDoubt | None = None
    sensitive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """All that the journal needs to know of a tool when it is called. `declared`: the author said the effect."""

    effect: Effect
    declared: bool
    approval_required: bool
    timeout_seconds: float
    on_in_doubt: OnInDoubt
    sensitive: bool


DEFAULT_TIMEOUT_SECONDS = 60.0


def hinted_effect(hints: ToolHints) -> Effect | None:
    """The effect that a server's hints claim. Read-only is looked at first: servers mark reads `idempotent=False`."""
    if hints.read_only:
        return Effect.READ
    if hints.idempotent:
        return Effect.IDEMPOTENT
    return None


def policy_for(
    tool: str,
    rules: tuple[ToolRule, ...],
    hints: ToolHints | None = None,
    *,
    server_timeout_seconds: float | None = None,
) -> ToolPolicy:
    """The policy of one tool. The first rule that matches and says something of a point decides that point.

    `hints` are passed only for servers whose hints the agent trusts. Approval defaults to required for `Once`.
    """
    matching = [rule for rule in rules if fnmatchcase(tool, rule.match)]
    declared = next((rule.effect for rule in matching if rule.effect is not None), None)
    effect = declared or (hinted_effect(hints) if hints is not None else None) or Effect.ONCE
    approval = next((rule.approval_required for rule in matching if rule.approval_required is not None), None)
    timeout = next((rule.timeout_seconds for rule in matching if rule.timeout_seconds is not None), None)
    return ToolPolicy(
        effect=effect,
        declared=declared is not None,
        approval_required=effect is Effect.ONCE if approval is None else approval,
        timeout_seconds=timeout or server_timeout_seconds or DEFAULT_TIMEOUT_SECONDS,
        on_in_doubt=next((rule.on_in_doubt for rule in matching if rule.on_in_doubt is not None), OnInDoubt.ASK),
        sensitive=any(rule.sensitive for rule in matching),
    )
