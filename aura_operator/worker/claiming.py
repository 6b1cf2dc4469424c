"""Claims a Pending task. Owns the first write of an owner."""

from __future__ import annotations

import asyncio
import uuid

import structlog

from aura_operator.core.codec import encode, schema_of
from aura_operator.core.entries import Claimed
from aura_operator.core.instants import quantised, to_second_text
from aura_operator.core.journal import head_after
from aura_operator.core.lifecycle import Desired
from aura_operator.errors import ConflictError, NotFoundError
from aura_operator.store.commit import commit
from aura_operator.store.task_fields import StatusFields
from aura_operator.store.task_writes import claim
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker import reporting
from aura_operator.worker.live import WorkerContext
from aura_operator.worker.look_ahead import Ahead, look_ahead
from aura_operator.worker.runtime import RuntimeSource

log = structlog.get_logger()


async def claimed(
    context: WorkerContext, runtimes: RuntimeSource, task: TaskView, revision: str
) -> tuple[TaskView | None, Ahead]:
    """The task in this worker's hands, or None where somebody else was first; and what was read meanwhile.

    Raises RefusedError at once where this worker may not write: a refused claim must not hold a slot.
    """
    looking = asyncio.ensure_future(look_ahead(context.store, context.clock, runtimes, task))
    try:
        mine = await _claim(context, task, revision)
        return mine, Ahead() if mine is None else await looking
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _claim(context: WorkerContext, task: TaskView, revision: str) -> TaskView | None:
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
        manifest = await commit(context.store, write, context.clock, refused_seconds=0)
    except (ConflictError, NotFoundError) as error:
        log.debug("not claimed", task=str(task.ref), error=str(error))
        return None
    mine = task_view(manifest)
    log.info("claimed", task=str(task.ref), epoch=mine.epoch, worker=context.owner.worker, proof=entry.proof)
    return mine


def ahead_seconds(task: TaskView, now: float) -> float:
    """By how much the controller's clock, which found a timer due, is ahead of a worker's that says `now`."""
    if len(task.steering) > task.steering_consumed or task.desired is not Desired.RUN:
        return 0.0  # woken for another reason, perhaps long before the timer's end
    due = [wait.until for wait in task.waiting_for if wait.kind.by_clock and wait.name in task.fired]
    return max(0.0, max((until for until in due if until is not None), default=now) - now)
