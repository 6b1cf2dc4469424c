"""The plan of a tool call: what the model asked for, and the policy that holds for it from then on."""

from __future__ import annotations

from dataclasses import dataclass

from aura_operator.core.effects import Effect, OnInDoubt


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """One tool call of a model response, with the policy that holds for it from here on.

    The policy is written down with the response, so that neither a crash nor a server that changes its mind about
    its own tool changes what a crash means.

    `call` is its number in the task, `part` its index among the response's parts, where the arguments are. `digest` is
    `sha256:<hex>` over the bytes of the arguments text, `schema` the digest of the tool's schema as it was offered.
    `declared`: the agent's author said the effect (a server's own hint counts for less). `refused` says why the call
    can't be made at all. `timer_seconds` makes it the built-in sleep; `question` the built-in question to a person.
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
    question: bool = False

    @property
    def needs_intent(self) -> bool:
        """Whether the journal must hold the intent before the call is sent: all but trusted, unapproved reads."""
        return self.effect is not Effect.READ or self.approval or not self.declared
