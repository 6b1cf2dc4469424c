"""Performs CallTool: intent, barrier, permission to send, the call, its result. Owns the order of these steps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aura_operator.agent import reply
from aura_operator.core.approvals import digest_of
from aura_operator.core.commands import CallTool
from aura_operator.core.entries import CallPlan, Decided, Intent, Outcome, Result, Verdict
from aura_operator.core.instants import quantised
from aura_operator.core.state import CallState, idempotency_key
from aura_operator.core.transcript import ModelReply
from aura_operator.errors import JournalError, ToolServerError
from aura_operator.worker.taskrun import TaskRun


@dataclass(slots=True)
class Stop:
    """Whether a running call was asked to stop: then its cancellation has an outcome, which is recorded."""

    asked: bool = False


async def perform(run: TaskRun, command: CallTool, stop: Stop) -> None:
    """Makes one call and records what came of it."""
    call = run.state.call(command.call)
    try:
        tools = await run.equipment.tools()
        spec = tools.get(call.plan.tool)
        if call.approved_schema:
            # A person saw this schema some time ago, and a server over plain HTTP doesn't tell when it changes.
            spec = await run.equipment.toolbox.fresh(call.plan.tool)
    except ToolServerError as error:
        _record(run, call.plan, Outcome.NOT_SENT, f"not called: {error}", started=None)
        return
    if call.approved_schema and (spec is None or spec.schema_digest != call.approved_schema):
        assert call.permitted_ask is not None
        reason = f"{call.plan.tool} is not the tool that was approved: its schema changed since, or it is gone"
        run.record(_stale(run, call.plan.call, call.permitted_ask, reason))
        return
    arguments = arguments_of(run, call.plan)
    key = idempotency_key(run.state.run, call.plan.call, call.plan.digest)
    started = quantised(run.now())
    if call.plan.needs_intent:
        run.record(Intent(at=started, call=call.plan.call, key=key, ask=call.permitted_ask))
    await _send(run, call, arguments, key, started, stop)


async def _send(run: TaskRun, call: CallState, arguments: str, key: str, started: float, stop: Stop) -> None:
    plan = call.plan
    sent = False

    async def before_send() -> None:
        nonlocal sent
        await run.authorise()
        sent = True

    try:
        if plan.needs_intent:
            await run.writer.barrier()
        done = await run.equipment.toolbox.call(
            plan.tool,
            arguments,
            meta=run.meta(key),
            timeout_seconds=plan.timeout_seconds,
            limit_bytes=run.equipment.spec.limits.tool_result_bytes,
            before_send=before_send,
        )
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not stop.asked or (task is not None and task.uncancel() > 0):
            raise
        outcome = Outcome.UNKNOWN if sent else Outcome.NOT_SENT
        _record(run, plan, outcome, f"{plan.tool} was asked to stop because the task ends", started=started)
        return
    _record(run, plan, done.status, done.text, started=started)


def _record(run: TaskRun, plan: CallPlan, outcome: Outcome, text: str, *, started: float | None) -> None:
    payload, objects = run.contents.keep(text, sensitive=plan.sensitive)
    if outcome is not Outcome.OK:
        run.log.warning("tool call without success", call=plan.call, tool=plan.tool, outcome=outcome.value)
    run.record(
        Result(
            at=quantised(run.now()),
            call=plan.call,
            outcome=outcome,
            payload=payload,
            # An intent says when it started; a call without one says so itself.
            started=None if plan.needs_intent else started,
        ),
        objects,
    )


def _stale(run: TaskRun, call: int, ask: int, reason: str) -> Decided:
    return Decided(at=quantised(run.now()), call=call, ask=ask, verdict=Verdict.STALE, reason=reason)


def arguments_of(run: TaskRun, plan: CallPlan) -> str:
    """The arguments text of a call of the current turn, to the byte as it was planned. Raises JournalError."""
    planned = run.arguments.get(plan.call)
    if planned is not None:
        return planned
    payload = next(item.payload for item in reversed(run.state.transcript) if isinstance(item, ModelReply))
    response = reply.load(run.contents.text(payload))
    arguments = next((call.arguments for call in reply.calls_of(response.parts) if call.part == plan.part), None)
    if arguments is None or digest_of(arguments) != plan.digest:
        raise JournalError(f"{run.task.ref}: the arguments of call {plan.call} are not those that were planned")
    return arguments
