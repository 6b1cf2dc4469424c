"""decide(state, limits, now) → what is wanted now. Owns what a task does next; must not say how it is done.

The runner writes the notes down, starts what is wanted and not running, and stops what runs and is not wanted.
"""

from __future__ import annotations

from typing import assert_never

from aura_operator.core.calls import CallState, Stage
from aura_operator.core.commands import Await, CallModel, CallTool, WaitReason, Wanted
from aura_operator.core.effects import OnInDoubt
from aura_operator.core.entries import Control, Finished, Requested, RequestKind, ToldInDoubt
from aura_operator.core.instants import quantised, to_second_text
from aura_operator.core.lifecycle import Phase
from aura_operator.core.limits import Limits
from aura_operator.core.names import PAUSE, approval_name, model_timer, settle_timer, sleep_timer
from aura_operator.core.state import TaskState

DEADLINE_PASSED = "the task's activeDeadlineSeconds passed (waiting counts too)"

_OF_PEOPLE = {
    RequestKind.TOOL_CALL: WaitReason.APPROVAL_REQUIRED,
    RequestKind.IN_DOUBT: WaitReason.IN_DOUBT,
    RequestKind.QUESTION: WaitReason.QUESTION_ASKED,
}


def decide(state: TaskState, limits: Limits, now: float) -> Wanted:
    """All that is wanted of the task at `now` (Unix seconds)."""
    if state.finished is not None:
        return Wanted()
    running = begun(state)
    ending = _ending(state, limits, quantised(now))
    if ending is not None:
        if not running:
            return Wanted(ending=ending)
        # Cancel and expiry ask running calls to stop; any other end lets them come to theirs.
        return Wanted() if state.control in (Control.CANCEL, Control.EXPIRED) else Wanted(work=running)
    if state.control is Control.PAUSE:
        return Wanted(work=running, waits=(Await(reason=WaitReason.PAUSED, name=PAUSE, until=None),))
    if state.open_calls:
        return _next_of_calls(state, limits, now)
    return _next_turn(state, limits, now)


def begun(state: TaskState) -> tuple[CallTool, ...]:
    """The calls whose intent is in the journal, and whose outcome isn't: they run, whatever else is wanted."""
    return tuple(_tool(call) for call in state.open_calls if call.stage is Stage.STARTED)


def _ending(state: TaskState, limits: Limits, at: float) -> Finished | None:
    """The first reason to end that holds, in the order of their weight."""
    if state.control is Control.CANCEL:
        return Finished(at=at, phase=Phase.CANCELLED, reason="Cancelled", message="spec.desired is Cancel")
    if state.control is Control.EXPIRED:
        return _failed(at, "DeadlineExceeded", DEADLINE_PASSED)
    if state.failure is not None:
        return _failed(at, state.failure.reason, state.failure.message)
    if state.recoveries > limits.recoveries:
        message = (
            f"its worker died {state.recoveries} times in a row without progress (limits.recoveries: "
            f"{limits.recoveries}); look at the last call in its journal before you run it again"
        )
        return _failed(at, "Poisoned", message)
    for call in state.open_calls:
        if call.stage is Stage.IN_DOUBT and call.plan.on_in_doubt is OnInDoubt.FAIL:
            since = to_second_text(call.started_at or call.planned_at)
            message = f"call {call.plan.call} ({call.plan.tool}) of {since} may or may not have happened"
            return _failed(at, "InDoubt", message)
    return None


def _failed(at: float, reason: str, message: str) -> Finished:
    return Finished(at=at, phase=Phase.FAILED, reason=reason, message=message)


def _attempts(count: int) -> str:
    return "1 attempt" if count == 1 else f"{count} attempts"


def _tool(call: CallState) -> CallTool:
    # An intent raises `attempts`, so the id stays the same from the want to the outcome.
    attempt = call.attempts if call.stage is Stage.STARTED else call.attempts + 1
    return CallTool(call=call.plan.call, attempt=attempt, keeps_outcome=call.plan.needs_intent)


def _next_of_calls(state: TaskState, limits: Limits, now: float) -> Wanted:
    notes: list[Requested | ToldInDoubt] = []
    work: list[CallTool] = []
    waits: list[Await] = []
    for call in state.open_calls:
        wanted = _next_of(state, call, limits, now)
        match wanted:
            case CallTool():
                work.append(wanted)
            case Await():
                waits.append(wanted)
            case Requested() | ToldInDoubt():
                notes.append(wanted)
            case _:
                assert_never(wanted)
    return Wanted(notes=tuple(notes), work=tuple(work), waits=tuple(waits))


def _next_of(
    state: TaskState, call: CallState, limits: Limits, now: float
) -> Requested | ToldInDoubt | CallTool | Await:
    plan, number = call.plan, call.plan.call
    if call.due_at is not None:
        return Await(reason=WaitReason.SLEEPING, name=sleep_timer(number), until=call.due_at, call=number)
    match call.stage:
        case Stage.PLANNED if plan.question:
            return _ask(call, RequestKind.QUESTION, limits, now)
        case Stage.PLANNED if plan.approval:
            return _ask(call, RequestKind.TOOL_CALL, limits, now)
        case Stage.CLEARED if call.not_before is not None and call.not_before > now:
            name = settle_timer(number)
            return Await(reason=WaitReason.RETRY_LATER, name=name, until=call.not_before, call=number)
        case Stage.PLANNED | Stage.CLEARED | Stage.STARTED:
            return _tool(call)
        case Stage.REQUESTED | Stage.SETTLING | Stage.QUESTIONED:
            asked = call.requested
            if asked is None:
                raise ValueError(f"call {number} is {call.stage.value}, and nobody was asked")
            return Await(
                reason=_OF_PEOPLE[asked.kind],
                name=approval_name(state.task, number, asked.ask),
                until=asked.expires_at,
                call=number,
            )
        case Stage.IN_DOUBT if plan.on_in_doubt is OnInDoubt.TELL_MODEL:
            return ToldInDoubt(at=quantised(now), call=number)
        case Stage.IN_DOUBT:
            return _ask(call, RequestKind.IN_DOUBT, limits, now)
        case Stage.CLOSED:
            raise ValueError(f"call {number} is closed")
    assert_never(call.stage)


def _ask(call: CallState, kind: RequestKind, limits: Limits, now: float) -> Requested:
    at = quantised(now)
    return Requested(
        at=at,
        call=call.plan.call,
        ask=call.asks,
        kind=kind,
        # Whole seconds: the approval says its expiry in seconds, and both must be the same instant.
        expires_at=float(int(at + limits.expires_after_seconds)),
        schema=call.schema if kind is RequestKind.TOOL_CALL else "",
        not_before=call.not_before if kind is RequestKind.IN_DOUBT else None,
    )


def _next_turn(state: TaskState, limits: Limits, now: float) -> Wanted:
    at = quantised(now)
    if state.answer is not None:
        return Wanted(ending=Finished(at=at, phase=Phase.SUCCEEDED, reason="Answered"))
    if state.turns >= limits.turns:
        message = f"{state.turns} model turns without a final answer (limits.turns: {limits.turns})"
        return Wanted(ending=_failed(at, "TurnLimit", message))
    spent = state.usage.input_tokens + state.usage.output_tokens
    if limits.tokens is not None and spent >= limits.tokens:
        return Wanted(ending=_failed(at, "TokenLimit", f"{spent} tokens used (limits.tokens: {limits.tokens})"))
    trouble = state.trouble
    if trouble is None:
        return Wanted(work=(CallModel(turn=state.turns + 1, attempt=1),))
    if trouble.retry_at is None or trouble.failures > limits.model_retries:
        return Wanted(ending=_failed(at, trouble.reason, f"{trouble.message} ({_attempts(trouble.failures)})"))
    if trouble.retry_at > now:
        name = model_timer(state.turns + 1, trouble.failures)
        wait = Await(reason=WaitReason.MODEL_RETRY, name=name, until=trouble.retry_at)
        return Wanted(waits=(wait,))
    return Wanted(work=(CallModel(turn=state.turns + 1, attempt=trouble.failures + 1),))
