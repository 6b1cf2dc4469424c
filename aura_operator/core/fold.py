"""apply(state, entry) → state: what each entry means. The live run and a recovery fold the same entries the same way.

Owns the meaning of entries. An entry that doesn't fit the state raises JournalError and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from aura_operator.core import recovery, wording
from aura_operator.core.effects import Effect
from aura_operator.core.entries import (
    CallPlan,
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
from aura_operator.core.state import (
    CallState,
    Failure,
    ModelTrouble,
    Stage,
    TaskState,
    Unresolved,
)
from aura_operator.core.transcript import Inline, ModelReply, Payload, Steered, ToolReturn
from aura_operator.errors import JournalError

MAX_ASKS = 3  # so often one call is brought before people for permission


def fold(state: TaskState, entries: Iterable[Entry]) -> TaskState:
    for entry in entries:
        state = apply(state, entry)
    return state


def apply(state: TaskState, entry: Entry) -> TaskState:
    """The state after one more entry. Pure; raises JournalError for an entry that can't follow this state."""
    if state.finished is not None:
        raise JournalError(f"task {state.task}: an entry follows the end of the journal")
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
            return replace(_decided(state, entry), recoveries=0)
        case Slept():
            call = _open(state, entry.call)
            text = wording.slept(call.plan.timer_seconds or 0, entry.interrupted)
            return replace(_close(state, call, text, is_error=False), recoveries=0)
        case ToldInDoubt():
            call = _open(state, entry.call, Stage.IN_DOUBT)
            text = wording.may_have_happened(call.plan.tool, call.started_at or entry.at)
            return _close(state, call, text, is_error=True)
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
        raise JournalError(f"task {state.task}: epoch {entry.epoch} was claimed after epoch {state.epoch}")
    died = entry.proof is not None and entry.proof.is_death
    return replace(
        state,
        epoch=entry.epoch,
        revision=entry.revision,
        recoveries=state.recoveries + 1 if died else state.recoveries,
        calls={number: recovery.after_claim(call, entry.at) for number, call in state.calls.items()},
    )


def _answered(state: TaskState, entry: ModelAnswered) -> TaskState:
    if state.open_calls:
        raise JournalError(f"task {state.task}: the model answered while calls of its last answer were open")
    numbers = [plan.call for plan in entry.calls]
    if numbers != list(range(state.last_call + 1, state.last_call + 1 + len(numbers))):
        raise JournalError(f"task {state.task}: calls {numbers} can't follow call {state.last_call}")
    state = replace(
        state,
        transcript=(*state.transcript, ModelReply(payload=entry.payload)),
        turns=state.turns + 1,
        steps=state.steps + 1,
        last_call=state.last_call + len(entry.calls),
        calls={plan.call: CallState(plan=plan, planned_at=entry.at) for plan in entry.calls},
        answer=None if entry.calls else entry.payload,
        trouble=None,
        recoveries=0,
        usage=state.usage + entry.usage,
    )
    for plan in entry.calls:
        if plan.refused is not None:
            state = _close(state, state.call(plan.call), plan.refused, is_error=True)
    return state


def _intended(state: TaskState, entry: Intent) -> TaskState:
    call = _open(state, entry.call, Stage.PLANNED, Stage.CLEARED)
    started = replace(call, stage=Stage.STARTED, attempts=call.attempts + 1, started_at=entry.at)
    state = _with(state, started)
    if call.plan.effect is Effect.READ or any(effect.call == entry.call for effect in state.unresolved):
        return state
    effect = Unresolved(call=entry.call, tool=call.plan.tool, since=entry.at)
    return replace(state, unresolved=(*state.unresolved, effect))


def _resulted(state: TaskState, entry: Result) -> TaskState:
    call = _open(state, entry.call, Stage.PLANNED, Stage.CLEARED, Stage.STARTED)
    if entry.outcome is Outcome.UNKNOWN:
        lost = recovery.after_lost_answer(call, entry.at)
        if lost is not None:
            return _with(state, lost)
    elif entry.outcome is Outcome.NOT_SENT and recovery.started_before(call):
        return _with(state, recovery.after_vain_repetition(call, entry.at))
    else:
        state = _resolve(state, entry.call)
    is_error = entry.outcome is not Outcome.OK
    return replace(_close_with(state, call, entry.payload, is_error=is_error), recoveries=0)


def _requested(state: TaskState, entry: Requested) -> TaskState:
    match entry.kind:
        case RequestKind.TOOL_CALL:
            call, stage = _open(state, entry.call, Stage.PLANNED), Stage.REQUESTED
        case RequestKind.IN_DOUBT:
            call, stage = _open(state, entry.call, Stage.IN_DOUBT), Stage.ASKED
        case RequestKind.QUESTION:
            raise JournalError(f"task {state.task}: schema 1 has no questions")
        case _:
            assert_never(entry.kind)
    if entry.ask != call.asks:
        raise JournalError(f"task {state.task}: ask {entry.ask} of call {entry.call} can't follow {call.asks} asks")
    return _with(state, replace(call, stage=stage, asks=call.asks + 1, requested=entry))


def _decided(state: TaskState, entry: Decided) -> TaskState:
    call = _open(state, entry.call, Stage.REQUESTED, Stage.ASKED, Stage.CLEARED)
    if call.requested is None or call.requested.ask != entry.ask:
        raise JournalError(f"task {state.task}: ask {entry.ask} of call {entry.call} was decided but never asked")
    if call.stage is Stage.ASKED:
        return _settled(state, call, entry)
    match entry.verdict:
        case Verdict.APPROVED:
            return _with(
                state,
                replace(
                    call,
                    stage=Stage.CLEARED,
                    permitted_ask=entry.ask,
                    approved_schema=call.requested.schema,
                ),
            )
        case Verdict.STALE if call.asks < MAX_ASKS:
            return _with(state, replace(call, stage=Stage.PLANNED, permitted_ask=None))
        case Verdict.STALE | Verdict.DENIED | Verdict.EXPIRED | Verdict.WITHDRAWN:
            return _close(state, call, wording.not_made(entry, call.plan.tool), is_error=True)
    assert_never(entry.verdict)


def _settled(state: TaskState, call: CallState, entry: Decided) -> TaskState:
    """A person's word on an effect in doubt. Anything but Done and Retry ends the task; the effect stays unresolved."""
    approved = entry.verdict is Verdict.APPROVED
    if approved and entry.choice is Choice.DONE:
        text = wording.settled_done(entry, call.plan.tool)
        return _close(_resolve(state, call.plan.call), call, text, is_error=False)
    if approved and entry.choice is Choice.RETRY:
        return _with(state, replace(call, stage=Stage.CLEARED, permitted_ask=entry.ask))
    reason, message = wording.aborted(entry, call.plan.tool, call.plan.call)
    state = _close(state, call, message, is_error=True)
    return replace(state, failure=Failure(reason=reason, message=message))


def _open(state: TaskState, number: int, *stages: Stage) -> CallState:
    call = state.calls.get(number)
    if call is None or call.stage is Stage.CLOSED or (stages and call.stage not in stages):
        found = "unknown" if call is None else call.stage.value
        raise JournalError(f"task {state.task}: an entry doesn't fit call {number}, which is {found}")
    return call


def _with(state: TaskState, call: CallState) -> TaskState:
    return replace(state, calls=state.calls | {call.plan.call: call})


def _resolve(state: TaskState, number: int) -> TaskState:
    return replace(state, unresolved=tuple(effect for effect in state.unresolved if effect.call != number))


def _close(state: TaskState, call: CallState, text: str, *, is_error: bool) -> TaskState:
    return _close_with(state, call, Inline(text=text), is_error=is_error)


def _close_with(state: TaskState, call: CallState, payload: Payload, *, is_error: bool) -> TaskState:
    plan: CallPlan = call.plan
    returned = ToolReturn(call=plan.call, part=plan.part, tool=plan.tool, payload=payload, is_error=is_error)
    state = _with(state, replace(call, stage=Stage.CLOSED, returned=returned))
    state = replace(state, steps=state.steps + 1)
    if state.open_calls:
        return state
    # The model sees the returns in the order of its calls, whatever order they came in.
    ordered = [state.calls[number].returned for number in sorted(state.calls)]
    return replace(state, transcript=(*state.transcript, *(item for item in ordered if item is not None)))
