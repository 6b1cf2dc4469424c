"""Performs CallModel: one model request, and what its calls mean for the journal. Owns the plan of each call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from aura_operator.agent import arguments as argument_check
from aura_operator.agent.builtin import as_built_in
from aura_operator.agent.models import reply
from aura_operator.agent.models.turn import ModelTurn, RequestedCall
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.commands import CallModel
from aura_operator.core.digests import digest_of
from aura_operator.core.entries import ModelAnswered, ModelFailed, Usage
from aura_operator.core.instants import quantised
from aura_operator.core.plan import CallPlan
from aura_operator.errors import ConfigurationError, ContentRejectedError, ModelError, ToolServerError
from aura_operator.worker.task.live import LiveTask

MAX_CALLS = 32  # of one response: their plans stand in one entry
MAX_BACKOFF_SECONDS = 60.0
MAX_RETRY_AFTER_SECONDS = 3600.0
LISTING_SECONDS = 60.0


async def perform(live: LiveTask, command: CallModel) -> None:
    """Asks the model once and records what came of it."""
    started = quantised(live.now())
    try:
        async with asyncio.timeout(LISTING_SECONDS):
            tools = await live.runtime.tools()
        turn = await live.runtime.model.respond(live.conversation, live.state.transcript, list(tools.values()))
        if len(turn.calls) > MAX_CALLS:
            raise ModelError(
                f"the model asked for {len(turn.calls)} calls at once (at most {MAX_CALLS})", retriable=True
            )
        plans = tuple(
            plan_of(live, tools, call, number) for number, call in enumerate(turn.calls, live.state.last_call + 1)
        )
        payload, objects = live.payloads.keep(turn.payload, sensitive=any(plan.sensitive for plan in plans))
    except ModelError as error:
        _failed(live, command, error.reason, str(error), retriable=error.retriable, retry_after=error.retry_after)
    except ToolServerError as error:
        _failed(live, command, error.reason, str(error), retriable=True, retry_after=None)
    except TimeoutError:
        message = f"the agent's tool servers did not list their tools within {LISTING_SECONDS:g} s"
        _failed(live, command, ToolServerError.reason, message, retriable=True, retry_after=None)
    except (ConfigurationError, ContentRejectedError) as error:
        _failed(live, command, error.reason, str(error), retriable=False, retry_after=None)
    else:
        await live.last_answer_written()
        live.arguments = {plan.call: call.arguments for plan, call in zip(plans, turn.calls, strict=True)}
        live.record(
            ModelAnswered(
                at=quantised(live.now()),
                started=started,
                payload=payload,
                calls=plans,
                usage=_usage(turn),
            ),
            objects,
            schema=reply.SCHEMA,
        )


def _failed(
    live: LiveTask, command: CallModel, reason: str, message: str, *, retriable: bool, retry_after: float | None
) -> None:
    now = live.now()
    # A provider may ask for more patience; not for none, which would spend the retries in no time, and not for ever.
    backoff = min(0.5 * 2 ** (command.attempt - 1), MAX_BACKOFF_SECONDS)
    retry_at = quantised(now + max(backoff, min(retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))) if retriable else None
    live.log.warning("model call failed", reason=reason, error=message, retriable=retriable)
    live.record(ModelFailed(at=quantised(now), reason=reason, message=message[:1000], retry_at=retry_at))


def _usage(turn: ModelTurn) -> Usage:
    usage = turn.usage
    return Usage(requests=usage.requests, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)


def plan_of(live: LiveTask, tools: Mapping[str, ToolSpec], call: RequestedCall, number: int) -> CallPlan:
    """The plan of one call: its policy as it is now, and whether it can be made at all."""
    spec = tools.get(call.tool)
    digest = digest_of(call.arguments)
    if spec is None:
        unknown = argument_check.unknown_tool(call.tool, tools)
        return CallPlan(call=number, part=call.part, tool=call.tool[:64] or "?", digest=digest, refused=unknown)
    policy = live.runtime.policy(spec)
    refused = argument_check.check(call.arguments, spec)
    if refused is not None and policy.sensitive:
        # What is wrong is said by quoting it, and the plan stands in the status.
        refused = f"the arguments of {spec.name} are no JSON object that fits its schema; they are kept secret"
    plan = CallPlan(
        call=number,
        part=call.part,
        tool=spec.name,
        effect=policy.effect,
        declared=policy.declared,
        approval=policy.approval_required,
        timeout_seconds=policy.timeout_seconds,
        on_in_doubt=policy.on_in_doubt,
        sensitive=policy.sensitive,
        digest=digest,
        schema=spec.schema_digest,
        refused=refused,
    )
    plan = as_built_in(plan, call.arguments)
    approvers = live.runtime.spec.approvals.approvers
    if plan.refused is None and plan.approval and not (approvers.users or approvers.groups):
        nobody = (
            f"{spec.name} needs a person's approval, and the agent {live.task.agent} names no approvers "
            f"(spec.approvals.approvers): it can't be called"
        )
        return replace(plan, refused=nobody)
    return plan
