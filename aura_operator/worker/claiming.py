"""Claims a Pending task. Owns the first write of an owner."""

from __future__ import annotations

import uuid

import structlog

from aura_operator.core.codec import encode, schema_of
from aura_operator.core.entries import Claimed
from aura_operator.core.instants import quantised, to_second_text
from aura_operator.core.journal import GENESIS, head_of
from aura_operator.errors import ConflictError, NotFoundError
from aura_operator.store.commit import commit
from aura_operator.store.task_fields import StatusFields
from aura_operator.store.task_writes import JournalDelta, claim
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker.task import reporting
from aura_operator.worker.task.live import WorkerContext
from aura_operator.worker.task.opening import Opening

log = structlog.get_logger()


def claim_entry(context: WorkerContext, task: TaskView, revision: str) -> Claimed:
    """The entry with which this worker takes the task as it is now."""
    ended = task.last_end
    return Claimed(
        at=quantised(context.clock.now()),
        epoch=task.epoch + 1,
        worker=context.owner.worker,
        incarnation=context.owner.incarnation,
        revision=revision,
        proof=ended.proof if ended is not None and ended.epoch == task.epoch else None,
    )


async def claimed(
    context: WorkerContext, task: TaskView, entry: Claimed, opening: Opening | None = None
) -> TaskView | None:
    """The task in this worker's hands, or None where somebody else was first. An opening goes out in the same write.

    Raises RefusedError at once where this worker may not write: a refused claim must not hold a slot.
    """
    now = entry.at
    first: StatusFields = {"run": str(uuid.uuid4()), "startedAt": to_second_text(now)}
    if entry.revision:
        first["agentRevision"] = entry.revision
    fields = reporting.claimed(task.manifest, now)
    if opening is not None:
        fields.update(reporting.running(opening.recalled.state, opening.entries[-1].at))
    delta = _delta(task, entry, opening)
    write = claim(task, context.owner, delta, now=now, first=first, fields=fields)
    try:
        manifest = await commit(context.store, write, context.clock, refused_seconds=0)
    except (ConflictError, NotFoundError) as error:
        log.debug("not claimed", task=str(task.ref), error=str(error))
        return None
    mine = task_view(manifest)
    log.info("claimed", task=str(task.ref), epoch=mine.epoch, worker=context.owner.worker, proof=entry.proof)
    return mine


def _delta(task: TaskView, entry: Claimed, opening: Opening | None) -> JournalDelta:
    entries = (entry, *(opening.entries if opening is not None else ()))
    lines = tuple(encode(each) for each in entries)
    head = task.journal.head if task.journal is not None else GENESIS
    return JournalDelta(lines=lines, head=head_of(lines, head), schema=max(schema_of(each) for each in entries))
