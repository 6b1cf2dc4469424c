"""What becomes of calls whose outcome nobody knows: after a new owner's claim, or when a server's answer was lost.

The table of the durability contract, by effect class. Must not decide what is done next; that is decide.py's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from aura_operator.core.effects import Effect
from aura_operator.core.state import CallState, Stage

IDEMPOTENT_ATTEMPTS = 3  # so often a lost answer of one owner is looked for again by itself


def after_claim(call: CallState, at: float) -> CallState:
    """The call as a new epoch finds it. `at` is the claim's time: the old owner's deadline has passed by then."""
    if call.stage is not Stage.STARTED:
        return call
    match call.plan.effect:
        case Effect.READ | Effect.IDEMPOTENT:
            return replace(call, stage=Stage.CLEARED)
        case Effect.ONCE:
            # The server may still be working on what the dead owner sent.
            return replace(call, stage=Stage.IN_DOUBT, not_before=at + call.plan.timeout_seconds)
    assert_never(call.plan.effect)


def after_lost_answer(call: CallState, at: float) -> CallState | None:
    """The call once its own owner has lost the answer; None where an error for the model settles it (a read)."""
    match call.plan.effect:
        case Effect.READ:
            return None
        case Effect.IDEMPOTENT if call.attempts < IDEMPOTENT_ATTEMPTS:
            return replace(call, stage=Stage.CLEARED)
        case Effect.IDEMPOTENT | Effect.ONCE:
            return replace(call, stage=Stage.IN_DOUBT, not_before=at + call.plan.timeout_seconds)
    assert_never(call.plan.effect)


def started_before(call: CallState) -> bool:
    """Whether an effect was started by an earlier attempt than the present one, and nobody knows what came of that."""
    earlier = call.attempts - 1 if call.stage is Stage.STARTED else call.attempts
    return earlier > 0 and call.plan.effect is not Effect.READ


def after_vain_repetition(call: CallState, at: float) -> CallState:
    """The call once its repetition was certainly not sent: that says nothing of the attempt before it."""
    return replace(call, stage=Stage.IN_DOUBT, not_before=call.not_before or at + call.plan.timeout_seconds)
