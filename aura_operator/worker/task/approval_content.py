"""What an AuraApproval of a task says: the request, who may decide, how many must, and until when. Writes no vote."""

from __future__ import annotations

from aura_operator.agent.builtin import question_of
from aura_operator.core.calls import CallState
from aura_operator.core.entries import Requested, RequestKind
from aura_operator.core.instants import to_second_text, to_text
from aura_operator.store.approvals import ApprovalSpecFields, ApproversFields, RequestFields
from aura_operator.store.overflow import create_retrying, payload_object, secret_object
from aura_operator.store.resources import CHECKPOINTS, SECRETS
from aura_operator.worker.task import calls
from aura_operator.worker.task.live import LiveTask

MAX_ARGUMENTS = 100_000  # characters that stand in the approval itself; its schema takes 128 KiB
MAX_INVOLVED = 64


async def spec_of(live: LiveTask, call: CallState, requested: Requested) -> ApprovalSpecFields:
    """The spec of the AuraApproval for a request. Writes what is too large or too sensitive for it beforehand."""
    approvals = live.runtime.spec.approvals
    question = requested.kind is RequestKind.QUESTION
    return {
        "request": await _request(live, call, requested),
        "approvers": _deciders(live, requested.kind),
        # A question asks for knowledge, not for permission: one answer will do, and the requester may give it.
        "quorum": 1 if question else approvals.quorum,
        "requester": live.task.requester,
        "involved": _involved(live) if approvals.four_eyes and not question else [],
        "expiresAt": to_second_text(requested.expires_at),
    }


def deciders_in_words(live: LiveTask, kind: RequestKind) -> str:
    """Who may decide, for a sentence."""
    deciders = _deciders(live, kind)
    words = [f"group {group}" for group in deciders["groups"]] + deciders["users"]
    return " or ".join(words) or "nobody (the agent names no approvers)"


def _deciders(live: LiveTask, kind: RequestKind) -> ApproversFields:
    approvers = live.runtime.spec.approvals.approvers
    users = list(approvers.users)
    if kind is RequestKind.QUESTION and live.task.requester not in users:
        users.append(live.task.requester)
    return {"users": users, "groups": list(approvers.groups)}


def _involved(live: LiveTask) -> list[str]:
    steered_by = [steering.by for steering in live.task.steering if steering.by]
    return list(dict.fromkeys([live.task.requester, *steered_by]))[:MAX_INVOLVED]


async def _request(live: LiveTask, call: CallState, requested: Requested) -> RequestFields:
    plan = call.plan
    request: RequestFields = {
        "task": live.task.ref.name,
        "run": live.state.run,
        "call": plan.call,
        "ask": requested.ask,
        "kind": requested.kind.value,
        "tool": plan.tool,
        "effect": plan.effect.value,
        "digest": plan.digest,
        "agentRevision": live.state.revision,
    }
    if requested.schema:
        request["toolSchemaDigest"] = requested.schema
    if requested.not_before is not None:
        request["notBefore"] = to_text(requested.not_before)
    await _show(live, call, requested.kind, request)
    return request


async def _show(live: LiveTask, call: CallState, kind: RequestKind, request: RequestFields) -> None:
    """Puts in what a person reads: the question, or the arguments in full, or where they are."""
    text = calls.arguments_of(live, call.plan)
    store, clock = live.context.store, live.context.clock
    if kind is RequestKind.QUESTION:
        request["question"] = question_of(text)
    elif call.plan.sensitive:
        secret, manifest = secret_object(live.task.manifest, text, f"arguments-{call.plan.call}")
        await create_retrying(store, SECRETS, manifest, clock)
        request["argumentsRef"] = {"kind": "Secret", "name": secret.name}
    elif len(text) > MAX_ARGUMENTS:
        stored, manifest = payload_object(live.task.manifest, text)
        await create_retrying(store, CHECKPOINTS, manifest, clock)
        request["argumentsRef"] = {"kind": "AuraCheckpoint", "name": stored.name}
    else:
        request["arguments"] = text
