"""Performs Await of an approval: makes sure that its AuraApproval exists, and reads how it ended.

Owns the object's content. Who may vote, and when votes are a decision, is admission's and the controller's part.
"""

from __future__ import annotations

from typing import Any

from aura_operator.core.approvals import Decision, Request, judge, mismatch
from aura_operator.core.calls import CallState
from aura_operator.core.commands import Await
from aura_operator.core.entries import Requested, RequestKind, Verdict
from aura_operator.core.instants import to_second_text, to_text
from aura_operator.errors import (
    AlreadyExistsError,
    ConfigurationError,
    ForbiddenError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from aura_operator.store.approvals import PENDING, approval_view
from aura_operator.store.commit import Backoff, get_retrying
from aura_operator.store.overflow import create_retrying, payload_object, secret_object
from aura_operator.store.resources import APPROVALS, CHECKPOINTS, SECRETS, Manifest, Ref, new, owned_by
from aura_operator.worker import calls
from aura_operator.worker.live import LiveTask

POLL_SECONDS = 0.5  # only while the task runs other calls; a parked one is woken by the controller
COLLECTED_SECONDS = 60.0  # a garbage collector that works needs a second or two
MAX_ARGUMENTS = 100_000  # characters that stand in the approval itself; its schema takes 128 KiB


async def perform(live: LiveTask, wait: Await) -> None:
    """Asks, then looks now and then how it ended, for as long as the task is busy with something else."""
    manifest = await asked(live, wait)
    while not note(live, wait, manifest):
        await live.context.clock.sleep(POLL_SECONDS)
        manifest = await _found(live, wait) or await asked(live, wait)


async def asked(live: LiveTask, wait: Await) -> Manifest:
    """The AuraApproval of a wait as it is now, created if it wasn't there. Its entry is written first."""
    known = live.approvals.pop(wait.name, None)
    if known is not None and approval_view(known).phase != PENDING:
        return known  # an ended approval stays as it is
    call, requested = _request_of(live, wait)
    await live.writer.barrier()
    manifest = await _manifest(live, wait, call, requested)
    backoff = Backoff(live.context.clock)
    given_up_at = live.now() + COLLECTED_SECONDS
    while True:
        try:
            created = await live.context.store.create(APPROVALS, manifest)
        except AlreadyExistsError as error:
            found = await _found(live, wait)
            if found is not None and approval_view(found).request.run == live.state.run:
                return found
            # Of an earlier task of this name, and about to be collected with it, unless that was deleted without.
            if found is not None and live.now() > given_up_at:
                raise ConfigurationError(
                    f"{_ref(live, wait)} is another run's and doesn't go: delete it, then start the task anew",
                    reason="ApprovalNameTaken",
                ) from error
            await backoff.wait(error)
        except (OutcomeUnknownError, UnavailableError, ForbiddenError) as error:
            await backoff.wait(error)
        else:
            await _announce(live, wait, call, requested)
            return created


async def _found(live: LiveTask, wait: Await) -> Manifest | None:
    try:
        return await get_retrying(live.context.store, _ref(live, wait), live.context.clock)
    except NotFoundError:
        return None


def note(live: LiveTask, wait: Await, manifest: Manifest) -> bool:
    """Takes the decision in, if there is one."""
    call, requested = _request_of(live, wait)
    decision = _decision(live, call, requested, manifest)
    if decision is None:
        return False
    live.decisions[call.plan.call, requested.ask] = decision
    live.wake.set()
    return True


def _request_of(live: LiveTask, wait: Await) -> tuple[CallState, Requested]:
    assert wait.call is not None
    call = live.state.call(wait.call)
    assert call.requested is not None
    return call, call.requested


def _ref(live: LiveTask, wait: Await) -> Ref:
    return Ref(resource=APPROVALS, namespace=live.task.ref.namespace, name=wait.name)


async def _manifest(live: LiveTask, wait: Await, call: CallState, requested: Requested) -> Manifest:
    approvals = live.runtime.spec.approvals
    plan = call.plan
    request: dict[str, Any] = {
        "task": live.task.ref.name,
        "run": live.state.run,
        "call": plan.call,
        "ask": requested.ask,
        "kind": requested.kind.value,
        "tool": plan.tool,
        "effect": plan.effect.value,
        "digest": plan.digest,
        "agentRevision": live.state.revision,
        **await _arguments(live, call),
    }
    if requested.schema:
        request["toolSchemaDigest"] = requested.schema
    if requested.not_before is not None:
        request["notBefore"] = to_text(requested.not_before)
    steered_by = [steering.by for steering in live.task.steering if steering.by]
    involved = list(dict.fromkeys([live.task.requester, *steered_by]))[:64] if approvals.four_eyes else []
    spec = {
        "request": request,
        "approvers": {"users": list(approvals.approvers.users), "groups": list(approvals.approvers.groups)},
        "quorum": approvals.quorum,
        "requester": live.task.requester,
        "involved": involved,
        "expiresAt": to_second_text(requested.expires_at),
    }
    return owned_by(new(APPROVALS, live.task.ref.namespace, wait.name, spec=spec), live.task.manifest)


async def _arguments(live: LiveTask, call: CallState) -> dict[str, Any]:
    """The arguments as the approval shows them: in full, or where they are."""
    text = calls.arguments_of(live, call.plan)
    store, clock = live.context.store, live.context.clock
    if call.plan.sensitive:
        secret, manifest = secret_object(live.task.manifest, text, f"arguments-{call.plan.call}")
        await create_retrying(store, SECRETS, manifest, clock)
        return {"argumentsRef": {"kind": "Secret", "name": secret.name}}
    if len(text) > MAX_ARGUMENTS:
        stored, manifest = payload_object(live.task.manifest, text)
        await create_retrying(store, CHECKPOINTS, manifest, clock)
        return {"argumentsRef": {"kind": "AuraCheckpoint", "name": stored.name}}
    return {"arguments": text}


async def _announce(live: LiveTask, wait: Await, call: CallState, requested: Requested) -> None:
    until = to_second_text(requested.expires_at)
    who = approvers_in_words(live)
    if requested.kind is RequestKind.IN_DOUBT:
        reason, what = "InDoubt", f"{call.plan.tool} (call {call.plan.call}) may or may not have happened"
    else:
        reason, what = "ApprovalRequested", f"{call.plan.tool} (call {call.plan.call}) needs approval"
    note = f"{what}: {who}, until {until}. Look: kubectl get auraapproval {wait.name} -o yaml"
    await live.context.events.record(live.task.manifest, reason, note)


def approvers_in_words(live: LiveTask) -> str:
    approvers = live.runtime.spec.approvals.approvers
    words = [f"group {group}" for group in approvers.groups] + list(approvers.users)
    return " or ".join(words) or "nobody (the agent names no approvers)"


def _decision(live: LiveTask, call: CallState, requested: Requested, manifest: Manifest) -> Decision | None:
    """How the approval ended, checked against what the journal asked for; None while it is open."""
    approval = approval_view(manifest)
    if approval.phase == PENDING:
        return None
    wrong = mismatch(
        Request(
            task=live.task.ref.name,
            run=live.state.run,
            call=call.plan.call,
            ask=requested.ask,
            kind=requested.kind,
            tool=call.plan.tool,
            digest=call.plan.digest,
            schema=requested.schema,
        ),
        approval.request,
    )
    if wrong is not None:
        return Decision(verdict=Verdict.STALE, reason=f"{approval.ref}: {wrong}")
    if approval.phase == Verdict.APPROVED.value:
        # Judged again from the votes, at the time of the controller's decision: a status alone allows nothing.
        return judge(approval.terms, approval.votes, approval.decided_at or approval.terms.expires_at)
    return Decision(
        verdict=Verdict(approval.phase),
        reason=approval.reason,
        by=tuple(user for user, vote in approval.votes.items() if not vote.approved),
        choice=approval.choice,
    )
