"""How this worker's part in a task ends, and ending one that can't be run at all. Owns the last words about a task."""

from __future__ import annotations

from enum import Enum

import structlog

from aura_operator.core.codec import encode
from aura_operator.core.entries import Finished
from aura_operator.core.instants import quantised
from aura_operator.core.journal import head_after
from aura_operator.core.lifecycle import Phase
from aura_operator.errors import AuraError, ConflictError, FencedError, NotFoundError
from aura_operator.store.commit import commit, describe, read_through
from aura_operator.store.contract import Growth, finish
from aura_operator.store.events import Weight
from aura_operator.store.resources import Manifest
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker import reporting
from aura_operator.worker.taskrun import Means, holding_of


class Ended(Enum):
    """How this worker's part in a task ended."""

    FINISHED = "finished"
    PARKED = "parked"
    RELEASED = "released"
    LOST = "lost"  # deleted, or another's


async def announce(means: Means, manifest: Manifest, entry: Finished) -> None:
    """Says in an Event how a task ended."""
    weight = Weight.WARNING if entry.phase is Phase.FAILED else Weight.NORMAL
    note = entry.message or "the model gave its final answer"
    await means.events.record(manifest, f"Task{entry.phase.value}", note, weight=weight)


async def fail(means: Means, task: TaskView, error: Exception) -> Ended:
    """Ends a task whose journal can't be read or written further, visibly; what is unresolved stays so."""
    if isinstance(error, AuraError):
        return await end(means, task, Phase.FAILED, error.reason, str(error))
    return await end(means, task, Phase.FAILED, "InternalError", f"a fault of the operator: {error!r}")


async def end(means: Means, task: TaskView, phase: Phase, reason: str, message: str) -> Ended:
    """Ends a task that this worker owns and doesn't run."""
    log = structlog.get_logger().bind(task=f"{task.ref.namespace}/{task.ref.name}", epoch=task.epoch)
    try:
        # What was under way before may have landed: what counts is what is there.
        manifest = await read_through(means.store, task.ref, means.clock)
        found = task_view(manifest)
        if found.uid != task.uid or found.journal is None or not found.owned_by(means.owner):
            raise FencedError(f"{task.ref}: {describe(manifest)}")
        now = quantised(means.clock.now())
        entry = Finished(at=now, phase=phase, reason=reason, message=message[:1000])
        line = encode(entry)
        growth = Growth(lines=(line,), head=head_after(found.journal.head, line))
        fields = reporting.ended(entry, task=manifest)
        holding = holding_of(found, means.owner)
        write = finish(holding, growth, phase=phase, result={}, now=now, extras=fields)
        manifest = await commit(means.store, write, means.clock)
    except (FencedError, NotFoundError, ConflictError) as lost:
        log.warning("task lost", error=str(lost))
        return Ended.LOST
    log.info("finished", phase=phase.value, reason=reason, message=message)
    await announce(means, manifest, entry)
    return Ended.FINISHED
