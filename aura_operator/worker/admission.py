"""Takes a Pending task in: claims it, folds its journal, and runs it with its agent's equipment.

Owns the way from a candidate to a running task, and what is said of one that can't be run.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping

import structlog

from aura_operator.api.agent import AgentSpec
from aura_operator.core.codec import decode, encode
from aura_operator.core.decide import DEADLINE_PASSED
from aura_operator.core.entries import Claimed
from aura_operator.core.fold import fold
from aura_operator.core.instants import quantised, to_second_text
from aura_operator.core.journal import head_after
from aura_operator.core.lifecycle import Desired, Phase, WaitKind
from aura_operator.core.state import initial
from aura_operator.errors import AuraError, ConfigurationError, ConflictError, NotFoundError, StoreError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.commit import commit
from aura_operator.store.contract import claim
from aura_operator.store.recall import lines_of, read_journal
from aura_operator.store.resources import Manifest
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker import reporting
from aura_operator.worker.claims import ends_only
from aura_operator.worker.contents import Contents
from aura_operator.worker.ending import Ended, end, fail
from aura_operator.worker.equipment import Equipment, EquipmentPool
from aura_operator.worker.revision import pin
from aura_operator.worker.runner import Runner
from aura_operator.worker.taskrun import Means, TaskRun

log = structlog.get_logger()


class AgentMissing(ConfigurationError):
    """The task's agent isn't there (yet)."""

    reason = "AgentNotFound"


async def revision_for(means: Means, task: TaskView) -> str:
    """The revision that the task has or, before its first claim, gets. Raises AgentMissing."""
    if task.revision or ends_only(task, means.clock.now()):
        return task.revision
    try:
        return await pin(means.store, task.ref.namespace, task.agent, means.clock)
    except NotFoundError as error:
        raise AgentMissing(
            f"AuraAgent {task.ref.namespace}/{task.agent} doesn't exist; create it, then run the task again"
        ) from error


async def take(
    means: Means,
    pool: EquipmentPool,
    task: TaskView,
    revision: str,
    *,
    missing: AgentMissing | None,
    running: Callable[[Runner], None],
) -> Ended:
    """Claims a task and runs it as far as it goes. `missing`: it can only be ended, for that reason."""
    # What the task waited for is read meanwhile: after a decision every millisecond is a person's.
    claimed, approvals = await asyncio.gather(_claim(means, task, revision), _approvals(means, task))
    if claimed is None:
        return Ended.LOST
    if task.desired is Desired.CANCEL:
        return await end(means, claimed, Phase.CANCELLED, "Cancelled", "cancelled as desired")
    if ends_only(task, means.clock.now()):
        return await end(means, claimed, Phase.FAILED, "DeadlineExceeded", DEADLINE_PASSED)
    if missing is not None:
        return await fail(means, claimed, missing)
    if claimed.session is not None:
        return await fail(
            means,
            claimed,
            ConfigurationError("this version runs no sessions; leave spec.sessionRef out", reason="Unsupported"),
        )
    try:
        async with pool.use(task.ref.namespace, revision) as equipment:
            lacking = _unsupported(equipment.spec)
            if lacking is not None:
                return await fail(means, claimed, ConfigurationError(lacking, reason="Unsupported"))
            ahead = ahead_seconds(task, means.clock.now())
            run = await _recalled(means, claimed, equipment, approvals, ahead)
            runner = Runner(run)
            running(runner)
            return await runner.run()
    except AuraError as error:
        return await fail(means, claimed, error)


def _unsupported(spec: AgentSpec) -> str | None:
    """What an agent asks for and this version doesn't do: said aloud, since it would be trusted."""
    if spec.sub_agents:
        return "this version runs no sub-agents; leave spec.subAgents out of the agent"
    if any(rule.lookup is not None for rule in spec.tools):
        return "this version follows no lookup tools; leave lookup out of the agent's spec.tools"
    return None


async def _claim(means: Means, task: TaskView, revision: str) -> TaskView | None:
    """The task in this worker's hands, or None where somebody else was first."""
    now = quantised(means.clock.now())
    ended = task.last_end
    entry = Claimed(
        at=now,
        epoch=task.epoch + 1,
        worker=means.owner.worker,
        incarnation=means.owner.incarnation,
        revision=revision,
        proof=ended.proof if ended is not None and ended.epoch == task.epoch else None,
    )
    line = encode(entry)
    first = {"run": str(uuid.uuid4()), "startedAt": to_second_text(now)}
    if revision:
        first["agentRevision"] = revision
    write = claim(
        task,
        means.owner,
        line=line,
        head=head_after(task.head, line),
        now=now,
        first=first,
        extras=reporting.claimed(task.manifest, now),
    )
    try:
        manifest = await commit(means.store, write, means.clock)
    except (ConflictError, NotFoundError) as error:
        log.debug("not claimed", task=str(task.ref), error=str(error))
        return None
    claimed = task_view(manifest)
    log.info("claimed", task=str(task.ref), epoch=claimed.epoch, worker=means.owner.worker, proof=entry.proof)
    return claimed


def ahead_seconds(task: TaskView, now: float) -> float:
    """By how much the controller's clock, which found a timer due, is ahead of a worker's that says `now`."""
    if len(task.steering) > task.steering_consumed or task.desired is not Desired.RUN:
        return 0.0  # woken for another reason, perhaps long before the timer's end
    due = [wait.until for wait in task.waiting_for if wait.kind is WaitKind.TIMER and wait.name in task.fired]
    return max(0.0, max((until for until in due if until is not None), default=now) - now)


async def _approvals(means: Means, task: TaskView) -> dict[str, Manifest]:
    """The approvals that a task waits for, by name, as they are now; without those that can't be read now."""
    names = [wait.name for wait in task.waiting_for if wait.kind is WaitKind.APPROVAL]

    async def read(name: str) -> Manifest | None:
        try:
            return await means.store.get(approval_ref(task.ref.namespace, name))
        except StoreError as error:
            log.debug("approval not read ahead", approval=name, error=str(error))
            return None

    found = await asyncio.gather(*(read(name) for name in names))
    return {name: manifest for name, manifest in zip(names, found, strict=True) if manifest is not None}


async def _recalled(
    means: Means, task: TaskView, equipment: Equipment, approvals: Mapping[str, Manifest], ahead: float
) -> TaskRun:
    """The run of a task as its journal tells it. Raises JournalError."""
    segments, inline = await read_journal(means.store, task, means.clock)
    entries = (decode(line) for line in lines_of(segments, inline))
    state = fold(initial(task=task.ref.name, run=task.run, user_input=task.user_input), entries)
    contents = Contents(task.manifest)
    await contents.load(means.store, state.transcript, means.clock)
    return TaskRun(means, task, state, segments, contents, equipment, approvals, ahead_seconds=ahead)
