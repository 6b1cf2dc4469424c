"""apply(state, entry) → state: what each entry means. The live run and a recovery fold the same entries the same way.

Owns the meaning of entries; how far it moves a call stands in the table of calls.py. An entry that doesn't fit the
state raises DamagedJournalError and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from aura_operator.core import recovery, wording
from aura_operator.core.calls import CallState, Cause, Stage, next_stage
from aura_operator.core.effects import Effect
from aura_operator.core.entries import (
    Choice,
    Claimed,
    Controlled,
    Decided,
    Entry,
    Finished,
    Intent,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Requested,
    RequestKind,
    Result,
    Slept,
    SteeringConsumed,
    ToldInDoubt,
    Verdict,
)
from aura_operator.core.state import Failure, ModelTrouble, TaskState, Unresolved
from aura_operator.core.transcript import Inline, ModelReply, Payload, Steered, ToolReturn
from aura_operator.errors import DamagedJournalError

MAX_ASKS = 3  # how often one call may be submitted for approval

ASKING = {
    RequestKind.TOOL_CALL: Cause.PERMISSION_ASKED,
    RequestKind.IN_DOUBT: Cause.DOUBT_ASKED,
    RequestKind.QUESTION: Cause.QUESTION_ASKED,
}


def fold(state: TaskState, entries: Iterable[Entry]) -> TaskState:
    for entry in entries:
        state = apply(state, entry)
    return state


def apply(state: TaskState, entry: Entry) -> TaskState:
    """The state after one more entry. Pure; raises DamagedJournalError for an entry that can't follow this state."""
    if state.finished is not None:
        raise DamagedJournalError(f"task {state.task}: an entry follows the end of the journal")
    return _meaning(state, entry)


def _meaning(state: TaskState, entry: Entry) -> TaskState:
    match entry:
        case Claimed():
            return _claimed(state, entry)
        case ModelAnswered():
            return _answered(state, entry)
        case ModelFailed():
            failures = state.trouble.failures + 1 if state.trouble else 1
            trouble = ModelTrouble(
                failures=failures, reason=entry.reason, message=entry.message, retry_at=entry.retry_at
            )
            return replace(state, trouble=trouble)
        case Intent():
            return _intended(state, entry)
        case Result():
            return _resulted(state, entry)
        case Requested():
            return _requested(state, entry)
        case Decided():
            return _decided(state, entry)
        case Slept():
            call = _call(state, entry.call)
            text = wording.slept(call.plan.timer_seconds or 0, entry.interrupted)
            return _closed(state, call, Cause.SLEPT, Inline(text=text), is_error=False)
        case ToldInDoubt():
            call = _call(state, entry.call)
            text = wording.may_have_happened(call.plan.tool, call.started_at or entry.at)
            return _closed(state, call, Cause.DOUBT_TOLD, Inline(text=text), is_error=True)
        case SteeringConsumed():
            return replace(
                state,
                transcript=(*state.transcript, Steered(text=entry.text, by=entry.by)),
                steering_consumed=entry.position + 1,
                answer=None,
            )
        case Controlled():
            return replace(state, control=entry.control)
        case Finished():
            return replace(state, finished=entry)
    assert_never(entry)


def _claimed(state: TaskState, entry: Claimed) -> TaskState:
    if entry.epoch <= state.epoch:
        raise DamagedJournalError(f"task {state.task}: epoch {entry.epoch} was claimed after epoch {state.epoch}")
    died = entry.proof is not None and entry.proof.is_death
    return replace(
        state,
        epoch=entry.epoch,
        revision=entry.revision,
        recoveries=state.recoveries + 1 if died else state.recoveries,
        calls={number: _reclaimed(call, entry.at) for number, call in state.calls.items()},
    )


def _reclaimed(call: CallState, at: float) -> CallState:
    """The call as a new epoch finds it. `at` is the claim's time: the old owner's deadline has passed by then."""
    cause = recovery.after_claim(call)
    return call if cause is None else _unfinished(call, cause, at)


def _unfinished(call: CallState, cause: Cause, at: float) -> CallState:
    """A call of which nobody knows what came: to be repeated, or in doubt from `at` on."""
    stage = next_stage(call, cause)
    if stage is not Stage.IN_DOUBT:
        return replace(call, stage=stage)
    # The server may still be working on what was sent. A repetition that wasn't sent leaves that as it was.
    earlier = call.not_before if cause is Cause.REPETITION_NOT_SENT else None
    return replace(call, stage=stage, not_before=earlier or at + call.plan.timeout_seconds)


def _answered(state: TaskState, entry: ModelAnswered) -> TaskState:
    if state.open_calls:
        raise DamagedJournalError(f"task {state.task}: the model answered while calls of its last answer were open")
    numbers = [plan.call for plan in entry.calls]
    if numbers != list(range(state.last_call + 1, state.last_call + 1 + len(numbers))):
        raise DamagedJournalError(f"task {state.task}: calls {numbers} can't follow call {state.last_call}")
    state = replace(
        state,
        transcript=(*state.transcript, ModelReply(payload=entry.payload)),
        turns=state.turns + 1,
        steps=state.steps + 1,
        last_call=state.last_call + len(entry.calls),
        calls={plan.call: CallState(plan=plan, planned_at=entry.at, schema=plan.schema) for plan in entry.calls},
        answer=None if entry.calls else entry.payload,
        trouble=None,
        recoveries=0,
        usage=state.usage + entry.usage,
    )
    for plan in entry.calls:
        if plan.refused is not None:
            state = _closed(state, state.call(plan.call), Cause.REFUSED, Inline(text=plan.refused), is_error=True)
    return state


def _intended(state: TaskState, entry: Intent) -> TaskState:
    call = _call(state, entry.call)
    stage = next_stage(call, Cause.INTENT)
    calls = _with(state, replace(call, stage=stage, attempts=call.attempts + 1, started_at=entry.at))
    if call.plan.effect is Effect.READ or any(effect.call == entry.call for effect in state.unresolved):
        return replace(state, calls=calls)
    effect = Unresolved(call=entry.call, tool=call.plan.tool, since=entry.at)
    return replace(state, calls=calls, unresolved=(*state.unresolved, effect))


def _resulted(state: TaskState, entry: Result) -> TaskState:
    call = _call(state, entry.call)
    cause = recovery.after_result(call, entry.outcome)
    if cause is not Cause.OUTCOME_KNOWN:
        return replace(state, calls=_with(state, _unfinished(call, cause, entry.at)))
    is_error = entry.outcome is not Outcome.OK
    return _closed(state, call, cause, entry.payload, is_error=is_error)


def _requested(state: TaskState, entry: Requested) -> TaskState:
    call = _call(state, entry.call)
    stage = next_stage(call, ASKING[entry.kind])
    if entry.ask != call.asks:
        raise DamagedJournalError(
            f"task {state.task}: ask {entry.ask} of call {entry.call} can't follow {call.asks} asks"
        )
    return replace(state, calls=_with(state, replace(call, stage=stage, asks=call.asks + 1, requested=entry)))


def _decided(state: TaskState, entry: Decided) -> TaskState:
    call = _call(state, entry.call)
    requested = call.requested
    if requested is None or requested.ask != entry.ask:
        raise DamagedJournalError(
            f"task {state.task}: ask {entry.ask} of call {entry.call} was decided but never asked"
        )
    state = replace(state, recoveries=0)
    if call.stage is Stage.STARTED:
        state, call = _not_acted_on(state, call)
    match call.stage:
        case Stage.SETTLING:
            return _settled(state, call, entry)
        case Stage.QUESTIONED:
            text, is_error = wording.replied(entry)
            return _closed(state, call, Cause.ANSWERED, Inline(text=text), is_error=is_error)
        case _:
            return _judged(state, call, requested, entry)


def _not_acted_on(state: TaskState, call: CallState) -> tuple[TaskState, CallState]:
    """An intent whose call its own owner has not sent; what was in doubt before it still is."""
    attempts = call.attempts - 1
    unresolved = state.unresolved if attempts else _without(state, call)
    return replace(state, unresolved=unresolved), replace(call, attempts=attempts)


def _judged(state: TaskState, call: CallState, requested: Requested, entry: Decided) -> TaskState:
    """A word on whether the call may be made."""
    match entry.verdict:
        case Verdict.APPROVED:
            cleared = replace(
                call,
                stage=next_stage(call, Cause.APPROVED),
                permitted_ask=entry.ask,
                approved_schema=requested.schema,
            )
            return replace(state, calls=_with(state, cleared))
        case Verdict.STALE if call.asks < MAX_ASKS:
            planned = replace(
                call, stage=next_stage(call, Cause.STALE), permitted_ask=None, schema=entry.schema or call.schema
            )
            return replace(state, calls=_with(state, planned))
        case Verdict.STALE | Verdict.DENIED | Verdict.EXPIRED | Verdict.WITHDRAWN:
            cause = Cause.STALE_TOO_OFTEN if entry.verdict is Verdict.STALE else Cause.NOT_APPROVED
            text = wording.not_made(entry, call.plan.tool)
            return _closed(state, call, cause, Inline(text=text), is_error=True)
    assert_never(entry.verdict)


def _settled(state: TaskState, call: CallState, entry: Decided) -> TaskState:
    """A person's word on an effect in doubt. Anything but Done and Retry ends the task; the effect stays unresolved."""
    approved = entry.verdict is Verdict.APPROVED
    if approved and entry.choice is Choice.DONE:
        text = wording.settled_done(entry, call.plan.tool)
        return _closed(state, call, Cause.SETTLED_DONE, Inline(text=text), is_error=False)
    if approved and entry.choice is Choice.RETRY:
        retried = replace(call, stage=next_stage(call, Cause.SETTLED_RETRY), permitted_ask=entry.ask)
        return replace(state, calls=_with(state, retried))
    reason, message = wording.aborted(entry, call.plan.tool, call.plan.call)
    state = replace(state, failure=Failure(reason=reason, message=message))
    return _closed(state, call, Cause.SETTLED_ABORT, Inline(text=message), is_error=True)


def _call(state: TaskState, number: int) -> CallState:
    call = state.calls.get(number)
    if call is None:
        raise DamagedJournalError(f"task {state.task}: an entry is about call {number}, which isn't in this turn")
    return call


def _without(state: TaskState, call: CallState) -> tuple[Unresolved, ...]:
    return tuple(effect for effect in state.unresolved if effect.call != call.plan.call)


def _with(state: TaskState, call: CallState) -> dict[int, CallState]:
    return {**state.calls, call.plan.call: call}


RESOLVING = (Cause.OUTCOME_KNOWN, Cause.SETTLED_DONE)  # what became of the effect is known


def _closed(state: TaskState, call: CallState, cause: Cause, payload: Payload, *, is_error: bool) -> TaskState:
    """The state once the model's answer to a call is known."""
    plan = call.plan
    returned = ToolReturn(call=plan.call, part=plan.part, tool=plan.tool, payload=payload, is_error=is_error)
    calls = _with(state, replace(call, stage=next_stage(call, cause), returned=returned))
    transcript = state.transcript
    if all(other.stage is Stage.CLOSED for other in calls.values()):
        # The model sees the returns in the order of its calls, whatever order they came in.
        ordered = (calls[number].returned for number in sorted(calls))
        transcript = (*transcript, *(item for item in ordered if item is not None))
    unresolved = state.unresolved
    if unresolved and cause in RESOLVING:
        unresolved = _without(state, call)
    return replace(
        state,
        calls=calls,
        transcript=transcript,
        unresolved=unresolved,
        steps=state.steps + 1,
        recoveries=state.recoveries if cause in (Cause.REFUSED, Cause.DOUBT_TOLD) else 0,
    )
