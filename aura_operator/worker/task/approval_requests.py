"""Performs a wait for people: makes sure that its AuraApproval exists, and reads how it ended.

What the object says is approval_content.py's. Who may vote is decided by admission, when votes are a decision by the
controller.
"""

from __future__ import annotations

from typing import assert_never

from aura_operator.core.approvals import Decision, Request, judge, mismatch
from aura_operator.core.calls import CallState
from aura_operator.core.commands import Await
from aura_operator.core.entries import Requested, RequestKind, Verdict
from aura_operator.core.instants import to_second_text
from aura_operator.errors import (
    AlreadyExistsError,
    ConfigurationError,
    ForbiddenError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from aura_operator.store.approvals import PENDING, approval_view
from aura_operator.store.commit import RIGHTS_SECONDS, Backoff, get_retrying
from aura_operator.store.resources import APPROVALS, Manifest, Ref, new, owned_by
from aura_operator.worker.task import approval_content
from aura_operator.worker.task.live import LiveTask

POLL_SECONDS = 0.5  # only while the task runs other calls; a parked one is woken by the controller
SETTLING_SECONDS = 0.01  # between looks at one that the controller has decided and is about to settle
COLLECTED_SECONDS = 60.0  # a garbage collector that works needs a second or two
MAX_ARGUMENTS = 100_000  # characters that stand in the approval itself; its schema takes 128 KiB


async def perform(live: LiveTask, wait: Await) -> None:
    """Asks, then looks now and then how it ended, for as long as the task is busy with something else."""
    manifest = await asked(live, wait)
    live.asked.add(wait.name)
    live.wake.set()
    while not note(live, wait, manifest):
        await live.context.clock.sleep(SETTLING_SECONDS if live.about_to_be_settled(wait.name) else POLL_SECONDS)
        manifest = await _found(live, wait) or await asked(live, wait)


async def asked(live: LiveTask, wait: Await) -> Manifest:
    """The AuraApproval of a wait as it is now, created if it wasn't there. Its entry is written first."""
    known = live.approvals.pop(wait.name, None)
    if known is not None and approval_view(known).request.run == live.state.run:
        return known  # read with the claim: it is there, and one that has ended stays as it is
    call, requested = _request_of(live, wait)
    await live.writer.barrier()
    spec = await approval_content.spec_of(live, call, requested)
    manifest = owned_by(new(APPROVALS, live.task.ref.namespace, wait.name, spec=spec), live.task.manifest)
    backoff = Backoff(live.context.clock, about=f"creating {_ref(live, wait)}", refused_seconds=RIGHTS_SECONDS)
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


async def has_ended(live: LiveTask, wait: Await) -> bool:
    """Whether an approval that is there has ended, by a fresh look; then its decision is taken in."""
    manifest = await _found(live, wait)
    if manifest is None:
        live.asked.discard(wait.name)  # deleted by somebody: it is asked anew
        return True
    return note(live, wait, manifest)


def note(live: LiveTask, wait: Await, manifest: Manifest) -> bool:
    """Takes the decision in, if there is one."""
    call, requested = _request_of(live, wait)
    decision = decision_on(live.task.ref.name, live.state.run, call, requested, manifest)
    if decision is None:
        return False
    live.decisions[call.plan.call, requested.ask] = decision
    live.wake.set()
    return True


def _request_of(live: LiveTask, wait: Await) -> tuple[CallState, Requested]:
    call = live.state.call(wait.call or 0)
    if call.requested is None:
        raise ValueError(f"{wait.name} is waited for, and nobody was asked")
    return call, call.requested


def _ref(live: LiveTask, wait: Await) -> Ref:
    return Ref(resource=APPROVALS, namespace=live.task.ref.namespace, name=wait.name)


async def _announce(live: LiveTask, wait: Await, call: CallState, requested: Requested) -> None:
    until = to_second_text(requested.expires_at)
    who = approval_content.deciders_in_words(live, requested.kind)
    match requested.kind:
        case RequestKind.TOOL_CALL:
            reason, what = "ApprovalRequested", f"{call.plan.tool} (call {call.plan.call}) needs approval"
        case RequestKind.IN_DOUBT:
            reason, what = "InDoubt", f"{call.plan.tool} (call {call.plan.call}) may or may not have happened"
        case RequestKind.QUESTION:
            reason, what = "QuestionAsked", "the model has a question"
        case _:
            assert_never(requested.kind)
    note = f"{what}: {who}, until {until}. Look: kubectl get auraapproval {wait.name} -o yaml"
    await live.context.events.record(live.task.manifest, reason, note)


def decision_on(task: str, run: str, call: CallState, requested: Requested, manifest: Manifest) -> Decision | None:
    """How the approval ended, checked against what the journal asked for; None while it is open."""
    approval = approval_view(manifest)
    if approval.phase == PENDING:
        return None
    wrong = mismatch(
        Request(
            task=task,
            run=run,
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
