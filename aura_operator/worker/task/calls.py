"""Performs CallTool: intent, barrier, permission to send, the call, its result. Owns the order of these steps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aura_operator.agent.models import reply
from aura_operator.agent.specs import ToolCall
from aura_operator.core.calls import CallState, Stage
from aura_operator.core.commands import CallTool
from aura_operator.core.digests import digest_of
from aura_operator.core.entries import Decided, Intent, Outcome, Result, Verdict
from aura_operator.core.instants import quantised
from aura_operator.core.names import idempotency_key
from aura_operator.core.plan import CallPlan
from aura_operator.core.state import TaskState
from aura_operator.core.transcript import ModelReply
from aura_operator.errors import DamagedJournalError, ToolServerError
from aura_operator.worker.task.live import LiveTask


@dataclass(slots=True)
class Stop:
    """Whether a running call was asked to stop: then its cancellation has an outcome, which is recorded."""

    asked: bool = False


@dataclass(slots=True, kw_only=True)
class _Progress:
    """How far this attempt has come. `begun`: its intent is in the journal, so it needs an outcome there too."""

    begun: bool
    sent: bool = False


async def perform(live: LiveTask, command: CallTool, stop: Stop) -> None:
    """Makes one call and records what came of it. One whose intent went out with the claim has begun already."""
    call = live.state.call(command.call)
    progress = _Progress(begun=call.stage is Stage.STARTED)
    try:
        await _perform(live, call, progress)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not progress.begun or not stop.asked or (task is not None and task.uncancel() > 0):
            raise
        outcome = Outcome.UNKNOWN if progress.sent else Outcome.NOT_SENT
        text = f"{call.plan.tool} was asked to stop because the task ends"
        _record(live, call.plan, outcome, text, started=None)


async def _perform(live: LiveTask, call: CallState, progress: _Progress) -> None:
    try:
        tools = await live.runtime.tools()
        spec = tools.get(call.plan.tool)
        if call.approved_schema:
            # A person saw this schema some time ago, and a server over plain HTTP doesn't tell when it changes.
            spec = await live.tool(call.plan.tool)
    except ToolServerError as error:
        _record(live, call.plan, Outcome.NOT_SENT, f"not called: {error}", started=None)
        return
    if call.approved_schema and (spec is None or spec.schema_digest != call.approved_schema):
        live.record(_stale(live, call, spec.schema_digest if spec is not None else ""))
        return
    arguments = arguments_of(live, call.plan)
    intent = intent_of(live.state, call, live.now())
    if call.plan.needs_intent and not progress.begun:
        live.record(intent)
        progress.begun = True
    await _send(live, call.plan, arguments, intent, progress)


def intent_of(state: TaskState, call: CallState, now: float) -> Intent:
    """What is in the journal before a call with an effect begins."""
    key = idempotency_key(state.run, call.plan.call, call.plan.digest)
    return Intent(at=quantised(now), call=call.plan.call, key=key, ask=call.permitted_ask)


async def _send(live: LiveTask, plan: CallPlan, arguments: str, intent: Intent, progress: _Progress) -> None:
    async def before_send() -> None:
        await live.authorise()
        progress.sent = True

    made = ToolCall(
        tool=plan.tool,
        arguments=arguments,
        meta=live.meta(intent.key),
        timeout_seconds=plan.timeout_seconds,
        limit_bytes=live.runtime.spec.limits.tool_result_bytes,
    )
    if plan.needs_intent:
        await live.writer.barrier()
    done = await live.runtime.toolbox.call(made, before_send)
    _record(live, plan, done.status, done.text, started=intent.at)


def _record(live: LiveTask, plan: CallPlan, outcome: Outcome, text: str, *, started: float | None) -> None:
    payload, objects = live.payloads.keep(text, sensitive=plan.sensitive)
    if outcome is not Outcome.OK:
        live.log.warning("tool call without success", call=plan.call, tool=plan.tool, outcome=outcome.value)
    live.record(
        Result(
            at=quantised(live.now()),
            call=plan.call,
            outcome=outcome,
            payload=payload,
            # An intent says when it started; a call without one says so itself.
            started=None if plan.needs_intent else started,
        ),
        objects,
    )


def _stale(live: LiveTask, call: CallState, schema: str) -> Decided:
    """What was approved has changed, so the approval is no use any more; it is asked for again, for what is there."""
    if call.permitted_ask is None:
        raise ValueError(f"call {call.plan.call} has a schema that was approved, and no approval")
    return Decided(
        at=quantised(live.now()),
        call=call.plan.call,
        ask=call.permitted_ask,
        verdict=Verdict.STALE,
        reason=f"{call.plan.tool} is not the tool that was approved: its schema changed since, or it is gone",
        schema=schema,
    )


def arguments_of(live: LiveTask, plan: CallPlan) -> str:
    """The arguments text of a call of the current turn, to the byte as it was planned. Raises DamagedJournalError."""
    planned = live.arguments.get(plan.call)
    if planned is not None:
        return planned
    payload = next(item.payload for item in reversed(live.state.transcript) if isinstance(item, ModelReply))
    response = reply.load(live.payloads.text(payload))
    arguments = next((call.arguments for call in reply.calls_of(response.parts) if call.part == plan.part), None)
    if arguments is None or digest_of(arguments) != plan.digest:
        raise DamagedJournalError(f"{live.task.ref}: the arguments of call {plan.call} are not those that were planned")
    return arguments
