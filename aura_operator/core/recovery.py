"""What becomes of calls whose outcome nobody knows: after a new owner's claim, or when a server's answer was lost.

The table of the durability contract, by effect class: each function names the cause that moves the call. Must not
decide what is done next; that is decide.py's.
"""

from __future__ import annotations

from typing import assert_never

from aura_operator.core.calls import CallState, Cause, Stage
from aura_operator.core.effects import Effect
from aura_operator.core.entries import Controlled, Decided, Entry, Outcome, Result, Slept, SteeringConsumed
from aura_operator.core.state import TaskState

IDEMPOTENT_ATTEMPTS = 3  # automatic attempts by one owner while answers are lost


def after_claim(call: CallState) -> Cause | None:
    """What a new epoch means for a call; None if it had not started."""
    if call.stage is not Stage.STARTED:
        return None
    match call.plan.effect:
        case Effect.READ | Effect.IDEMPOTENT:
            return Cause.OWNER_LOST_REPEATABLE
        case Effect.ONCE:
            return Cause.OWNER_LOST
    assert_never(call.plan.effect)


def after_result(call: CallState, outcome: Outcome) -> Cause:
    """What an attempt's outcome means for the call."""
    match outcome:
        case Outcome.OK | Outcome.ERROR:
            return Cause.OUTCOME_KNOWN
        case Outcome.NOT_SENT:
            # That a repetition was not sent says nothing of the attempt before it.
            return Cause.REPETITION_NOT_SENT if _started_before(call) else Cause.OUTCOME_KNOWN
        case Outcome.UNKNOWN:
            return _after_lost_answer(call)
    assert_never(outcome)


def found_again(state: TaskState, entry: Entry) -> bool:
    """Whether whoever goes on with the task comes by this entry again if it is lost: then it may be written late.

    The world still says what was absorbed from it, and a plain read is read again.
    """
    match entry:
        case Result():
            return not state.call(entry.call).plan.needs_intent
        case Decided() | Slept() | SteeringConsumed() | Controlled():
            return True
        case _:
            return False


def _after_lost_answer(call: CallState) -> Cause:
    match call.plan.effect:
        case Effect.READ:
            return Cause.OUTCOME_KNOWN  # an error that the model is told settles it
        case Effect.IDEMPOTENT if call.attempts < IDEMPOTENT_ATTEMPTS:
            return Cause.ANSWER_LOST_REPEATABLE
        case Effect.IDEMPOTENT | Effect.ONCE:
            return Cause.ANSWER_LOST
    assert_never(call.plan.effect)


def _started_before(call: CallState) -> bool:
    """Whether an earlier attempt than the present one started an effect, and nobody knows what came of it."""
    earlier = call.attempts - 1 if call.stage is Stage.STARTED else call.attempts
    return earlier > 0 and call.plan.effect is not Effect.READ
