"""How this worker's part in a task ends, and ending one that can't be run at all. Owns the last words about a task."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import structlog

from aura_operator.core.codec import encode
from aura_operator.core.entries import Finished
from aura_operator.core.instants import quantised
from aura_operator.core.journal import head_after
from aura_operator.core.lifecycle import Phase
from aura_operator.errors import (
    AuraError,
    ConflictError,
    FencedError,
    JournalError,
    NewerJournalError,
    NotFoundError,
    RefusedError,
)
from aura_operator.store.commit import RIGHTS_SECONDS, commit, describe, get_retrying
from aura_operator.store.events import EventType
from aura_operator.store.resources import Manifest
from aura_operator.store.task_fields import CANNOT_RUN_NOW
from aura_operator.store.task_writes import JournalDelta, OwnedTask, finish, release
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker.task import reporting
from aura_operator.worker.task.live import WorkerContext, owned_task
from aura_operator.worker.task.sealing import nothing_new


class Ended(Enum):
    """How this worker's part in a task ended."""

    FINISHED = "finished"
    PARKED = "parked"
    RELEASED = "released"
    LOST = "lost"  # deleted, or another's, after it had been ours
    NOT_CLAIMED = "not claimed"  # somebody else was first, or this worker goes
    NOT_YET = "not yet"  # not claimed: its agent may still be created
    DEFERRED = "deferred"  # released: what it runs with can't be had now
    DROPPED = "dropped"  # still said to be ours: even its release was refused
    LEFT = "left"  # released again: only a newer version can go on with it


async def announce(context: WorkerContext, manifest: Manifest, entry: Finished) -> None:
    """Says in an Event how a task ended."""
    event_type = EventType.WARNING if entry.phase is Phase.FAILED else EventType.NORMAL
    note = entry.message or "the model gave its final answer"
    await context.events.record(manifest, f"Task{entry.phase.value}", note, event_type=event_type)


async def fail(context: WorkerContext, task: TaskView, error: Exception) -> Ended:
    """Ends a task whose journal can't be read or written further, visibly; what is unresolved stays so. One that a
    newer version wrote is left to that version, and one where rights are missing to whoever has them."""
    if isinstance(error, NewerJournalError):
        ended = await hand_back(context, task, str(error))
        return Ended.LEFT if ended is Ended.RELEASED else ended
    if isinstance(error, RefusedError):
        ended = await hand_back(context, task, f"{CANNOT_RUN_NOW}{error}", refused_seconds=0)
        return Ended.DEFERRED if ended is Ended.RELEASED else ended
    if isinstance(error, AuraError):
        return await end(context, task, Phase.FAILED, error.reason, str(error))
    return await end(context, task, Phase.FAILED, "InternalError", f"a fault of the operator: {error!r}")


async def hand_back(
    context: WorkerContext,
    task: TaskView,
    why: str,
    *,
    unless: Callable[[], bool] = lambda: False,
    refused_seconds: float = RIGHTS_SECONDS,
) -> Ended:
    """Gives a task of this worker back as it is, and says why: RELEASED, or LOST where it isn't ours any more.

    `unless` is asked when the task has been read: does it run after all? Raises RefusedError.
    """
    clock = context.clock
    try:
        manifest = await get_retrying(context.store, task.ref, clock, refused_seconds=refused_seconds)
        found = task_view(manifest)
        if found.uid != task.uid or not found.owned_by(context.owner) or unless():
            return Ended.LOST
        owned = owned_task(found, context.owner)
        nothing = await _nothing_new(context, found, owned)
        write = release(owned, nothing, now=clock.now(), fields=reporting.left(why))
        await commit(context.store, write, clock, refused_seconds=refused_seconds)
    except (NotFoundError, ConflictError) as lost:
        structlog.get_logger().info("not released", task=str(task.ref), error=str(lost))
        return Ended.LOST
    structlog.get_logger().info("handed back", task=str(task.ref), why=why)
    return Ended.RELEASED


async def _nothing_new(context: WorkerContext, task: TaskView, owned: OwnedTask) -> JournalDelta:
    try:
        return await nothing_new(context.store, context.clock, task, owned)
    except JournalError as error:  # whoever can read it says what becomes of it
        structlog.get_logger().info("not sealed", task=str(task.ref), error=str(error))
        return JournalDelta(lines=(), head=owned.head, schema=owned.schema)


async def end(context: WorkerContext, task: TaskView, phase: Phase, reason: str, message: str) -> Ended:
    """Ends a task that this worker owns and doesn't run."""
    log = structlog.get_logger().bind(task=str(task.ref), epoch=task.epoch)
    try:
        # What was under way before may have landed: what counts is what is there.
        manifest = await get_retrying(context.store, task.ref, context.clock)
        found = task_view(manifest)
        if found.uid != task.uid or found.journal is None or not found.owned_by(context.owner):
            raise FencedError(f"{task.ref}: {describe(manifest)}")
        now = quantised(context.clock.now())
        entry = Finished(at=now, phase=phase, reason=reason, message=message[:1000])
        line = encode(entry)
        delta = JournalDelta(lines=(line,), head=head_after(found.journal.head, line))
        fields = reporting.ended(entry, task=manifest)
        owned = owned_task(found, context.owner)
        write = finish(owned, delta, phase=phase, result={}, now=now, fields=fields)
        manifest = await commit(context.store, write, context.clock)
    except (FencedError, NotFoundError, ConflictError) as lost:
        log.warning("task lost", error=str(lost))
        return Ended.LOST
    log.info("finished", phase=phase.value, reason=reason, message=message)
    await announce(context, manifest, entry)
    return Ended.FINISHED
