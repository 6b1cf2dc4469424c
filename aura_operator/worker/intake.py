"""Takes a Pending task in: claims it, folds its journal, and runs it with its agent's runtime.

Owns the way from a candidate to a running task, and what is said of one that can't be run.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping

import structlog

from aura_operator.core.codec import decode, encode, schema_of
from aura_operator.core.decide import DEADLINE_PASSED
from aura_operator.core.entries import Claimed
from aura_operator.core.fold import fold
from aura_operator.core.instants import quantised, to_second_text
from aura_operator.core.journal import head_after
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.state import initial
from aura_operator.errors import AuraError, ConfigurationError, ConflictError, NotFoundError, StoreError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.commit import commit
from aura_operator.store.journal_reads import lines_of, read_journal
from aura_operator.store.resources import Manifest
from aura_operator.store.task_fields import StatusFields
from aura_operator.store.task_writes import claim
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker import reporting
from aura_operator.worker.candidates import ends_only
from aura_operator.worker.ending import Ended, end, fail
from aura_operator.worker.live import LiveTask, WorkerContext
from aura_operator.worker.payloads import Payloads
from aura_operator.worker.revision import pin
from aura_operator.worker.runner import Runner
from aura_operator.worker.runtime import AgentRuntime, RuntimeSource

log = structlog.get_logger()


class AgentMissing(ConfigurationError):
    """The task's agent isn't there (yet)."""

    reason = "AgentNotFound"


async def revision_for(context: WorkerContext, task: TaskView) -> str:
    """The revision that the task has or, before its first claim, gets. Raises AgentMissing."""
    if task.revision or ends_only(task, context.clock.now()):
        return task.revision
    try:
        return await pin(context.store, task.ref.namespace, task.agent, context.clock)
    except NotFoundError as error:
        raise AgentMissing(
            f"AuraAgent {task.ref.namespace}/{task.agent} doesn't exist; create it, then run the task again"
        ) from error


async def take(
    context: WorkerContext,
    runtimes: RuntimeSource,
    task: TaskView,
    revision: str,
    *,
    missing: AgentMissing | None,
    running: Callable[[Runner], None],
) -> Ended:
    """Claims a task and runs it as far as it goes. `missing`: it can only be ended, for that reason."""
    # What the task waited for is read meanwhile: after a decision every millisecond is a person's.
    claimed, approvals = await asyncio.gather(_claim(context, task, revision), _approvals(context, task))
    if claimed is None:
        return Ended.NOT_CLAIMED
    if task.desired is Desired.CANCEL:
        return await end(context, claimed, Phase.CANCELLED, "Cancelled", "cancelled as desired")
    if ends_only(task, context.clock.now()):
        return await end(context, claimed, Phase.FAILED, "DeadlineExceeded", DEADLINE_PASSED)
    if missing is not None:
        return await fail(context, claimed, missing)
    if claimed.session is not None:
        return await fail(
            context,
            claimed,
            ConfigurationError("this version runs no sessions; leave spec.sessionRef out", reason="Unsupported"),
        )
    try:
        async with runtimes.use(task.ref.namespace, revision) as runtime:
            lacking = runtime.spec.unsupported()
            if lacking is not None:
                return await fail(context, claimed, ConfigurationError(lacking, reason="Unsupported"))
            ahead = ahead_seconds(task, context.clock.now())
            live = await _recalled(context, claimed, runtime, approvals, ahead)
            runner = Runner(live)
            running(runner)
            return await runner.run()
    except AuraError as error:
        return await fail(context, claimed, error)


async def _claim(context: WorkerContext, task: TaskView, revision: str) -> TaskView | None:
    """The task in this worker's hands, or None where somebody else was first."""
    now = quantised(context.clock.now())
    ended = task.last_end
    entry = Claimed(
        at=now,
        epoch=task.epoch + 1,
        worker=context.owner.worker,
        incarnation=context.owner.incarnation,
        revision=revision,
        proof=ended.proof if ended is not None and ended.epoch == task.epoch else None,
    )
    line = encode(entry)
    first: StatusFields = {"run": str(uuid.uuid4()), "startedAt": to_second_text(now)}
    if revision:
        first["agentRevision"] = revision
    write = claim(
        task,
        context.owner,
        line=line,
        schema=schema_of(entry),
        head=head_after(task.head, line),
        now=now,
        first=first,
        fields=reporting.claimed(task.manifest, now),
    )
    try:
        manifest = await commit(context.store, write, context.clock)
    except (ConflictError, NotFoundError) as error:
        log.debug("not claimed", task=str(task.ref), error=str(error))
        return None
    claimed = task_view(manifest)
    log.info("claimed", task=str(task.ref), epoch=claimed.epoch, worker=context.owner.worker, proof=entry.proof)
    return claimed


def ahead_seconds(task: TaskView, now: float) -> float:
    """By how much the controller's clock, which found a timer due, is ahead of a worker's that says `now`."""
    if len(task.steering) > task.steering_consumed or task.desired is not Desired.RUN:
        return 0.0  # woken for another reason, perhaps long before the timer's end
    due = [wait.until for wait in task.waiting_for if wait.kind.by_clock and wait.name in task.fired]
    return max(0.0, max((until for until in due if until is not None), default=now) - now)


async def _approvals(context: WorkerContext, task: TaskView) -> dict[str, Manifest]:
    """The approvals that a task waits for, by name, as they are now; without those that can't be read now."""
    names = [wait.name for wait in task.waiting_for if wait.kind.of_people]

    async def read(name: str) -> Manifest | None:
        try:
            return await context.store.get(approval_ref(task.ref.namespace, name))
        except StoreError as error:
            log.debug("approval not read ahead", approval=name, error=str(error))
            return None

    found = await asyncio.gather(*(read(name) for name in names))
    return {name: manifest for name, manifest in zip(names, found, strict=True) if manifest is not None}


async def _recalled(
    context: WorkerContext, task: TaskView, runtime: AgentRuntime, approvals: Mapping[str, Manifest], ahead: float
) -> LiveTask:
    """The run of a task as its journal tells it. Raises DamagedJournalError, NewerJournalError."""
    segments, inline = await read_journal(context.store, task, context.clock)
    entries = (decode(line) for line in lines_of(segments, inline))
    state = fold(initial(task=task.ref.name, run=task.run, user_input=task.user_input), entries)
    payloads = Payloads(task.manifest)
    await payloads.load(context.store, state.items, context.clock)
    return LiveTask(context, task, state, segments, payloads, runtime, approvals, ahead_seconds=ahead)
