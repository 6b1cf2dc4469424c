"""decide(state, limits, now) → what is wanted now. Owns what a task does next; must not say how it is done.

The runner starts what is wanted and not running, and stops what runs and is not wanted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from aura_operator.core.commands import Ask, Await, CallModel, CallTool, Command, Finish, TellInDoubt
from aura_operator.core.effects import OnInDoubt
from aura_operator.core.entries import Control, Entry, Finished, Requested, RequestKind, ToldInDoubt
from aura_operator.core.instants import quantised, to_second_text
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.core.state import CallState, Stage, TaskState, approval_name

PAUSE_NAME = "pause"
DEADLINE_PASSED = "the task's activeDeadlineSeconds passed (waiting counts too)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The agent's bounds. `tokens` counts input and output of all model calls; None: no bound."""

    turns: int = 50
    tokens: int | None = None
    recoveries: int = 5
    model_retries: int = 5


def decide(state: TaskState, limits: Limits, now: float) -> list[Command]:
    """All that is wanted of the task at `now` (Unix seconds)."""
    if state.finished is not None:
        return []
    running = [call for call in state.open_calls if call.stage is Stage.STARTED]
    ending = _ending(state, limits)
    if ending is not None:
        if not running:
            return [ending]
        # Cancel and expiry ask running calls to stop; any other end lets them come to theirs.
        return [] if state.control in (Control.CANCEL, Control.EXPIRED) else [_tool(call) for call in running]
    if state.control is Control.PAUSE:
        return [*(_tool(call) for call in running), Await(kind=WaitKind.PAUSE, name=PAUSE_NAME, until=None)]
    if state.open_calls:
        return [_next_of(state, call, now) for call in state.open_calls]
    return [_next_turn(state, limits, now)]


def _ending(state: TaskState, limits: Limits) -> Finish | None:
    """The first reason to end that holds, in the order of their weight."""
    if state.control is Control.CANCEL:
        return Finish(phase=Phase.CANCELLED, reason="Cancelled", message="cancelled as desired")
    if state.control is Control.EXPIRED:
        return _failed("DeadlineExceeded", DEADLINE_PASSED)
    if state.failure is not None:
        return _failed(state.failure.reason, state.failure.message)
    if state.recoveries > limits.recoveries:
        return _failed(
            "Poisoned",
            f"its worker died {state.recoveries} times in a row without progress (limits.recoveries: "
            f"{limits.recoveries}); look at the last call in its journal before you run it again",
        )
    for call in state.open_calls:
        if call.stage is Stage.IN_DOUBT and call.plan.on_in_doubt is OnInDoubt.FAIL:
            since = to_second_text(call.started_at or call.planned_at)
            return _failed(
                "InDoubt", f"call {call.plan.call} ({call.plan.tool}) of {since} may or may not have happened"
            )
    return None


def _failed(reason: str, message: str) -> Finish:
    return Finish(phase=Phase.FAILED, reason=reason, message=message)


def _tool(call: CallState) -> CallTool:
    # An intent raises `attempts`, so the id stays the same from the want to the outcome.
    return CallTool(call=call.plan.call, attempt=call.attempts if call.stage is Stage.STARTED else call.attempts + 1)


def _next_of(state: TaskState, call: CallState, now: float) -> Command:
    number = call.plan.call
    if call.due_at is not None:
        return Await(kind=WaitKind.TIMER, name=timer_name(number), until=call.due_at, call=number)
    match call.stage:
        case Stage.PLANNED if call.plan.approval:
            return Ask(call=number, ask=call.asks, kind=RequestKind.TOOL_CALL, not_before=None)
        case Stage.CLEARED if call.not_before is not None and call.not_before > now:
            return Await(kind=WaitKind.TIMER, name=f"settle-{number}", until=call.not_before)
        case Stage.PLANNED | Stage.CLEARED | Stage.STARTED:
            return _tool(call)
        case Stage.REQUESTED | Stage.ASKED:
            assert call.requested is not None
            name = approval_name(state.task, number, call.requested.ask)
            return Await(kind=WaitKind.APPROVAL, name=name, until=call.requested.expires_at, call=number)
        case Stage.IN_DOUBT if call.plan.on_in_doubt is OnInDoubt.TELL_MODEL:
            return TellInDoubt(call=number)
        case Stage.IN_DOUBT:
            return Ask(call=number, ask=call.asks, kind=RequestKind.IN_DOUBT, not_before=call.not_before)
        case Stage.CLOSED:
            raise ValueError(f"call {number} is closed")
    assert_never(call.stage)


def timer_name(call: int) -> str:
    """The name under which a built-in sleep stands in `waitingFor` and `fired`."""
    return f"sleep-{call}"


def _next_turn(state: TaskState, limits: Limits, now: float) -> Command:
    if state.answer is not None:
        return Finish(phase=Phase.SUCCEEDED, reason="Answered", message="")
    if state.turns >= limits.turns:
        return _failed("TurnLimit", f"{state.turns} model turns without a final answer (limits.turns: {limits.turns})")
    spent = state.usage.input_tokens + state.usage.output_tokens
    if limits.tokens is not None and spent >= limits.tokens:
        return _failed("TokenLimit", f"{spent} tokens used (limits.tokens: {limits.tokens})")
    trouble = state.trouble
    if trouble is None:
        return CallModel(turn=state.turns + 1, attempt=1)
    if trouble.retry_at is None or trouble.failures > limits.model_retries:
        return _failed(trouble.reason, f"{trouble.message} ({trouble.failures} attempts)")
    if trouble.retry_at > now:
        name = f"model-{state.turns + 1}-{trouble.failures}"
        return Await(kind=WaitKind.TIMER, name=name, until=trouble.retry_at)
    return CallModel(turn=state.turns + 1, attempt=trouble.failures + 1)


def at_once(command: Ask | TellInDoubt, *, now: float, expires_after_seconds: float, schema: str) -> Entry:
    """The entry of a command that needs nothing but being written down. `schema` is the digest that the person sees."""
    now = quantised(now)
    match command:
        case Ask(call=call, ask=ask, kind=kind, not_before=not_before):
            # Whole seconds: the approval says its expiry in seconds, and both must be the same instant.
            expires_at = float(int(now + expires_after_seconds))
            return Requested(
                at=now, call=call, ask=ask, kind=kind, expires_at=expires_at, schema=schema, not_before=not_before
            )
        case TellInDoubt(call=call):
            return ToldInDoubt(at=now, call=call)
    assert_never(command)


def last_entry(command: Finish, *, now: float) -> Finished:
    """The entry that ends the journal."""
    return Finished(at=quantised(now), phase=command.phase, reason=command.reason, message=command.message)
