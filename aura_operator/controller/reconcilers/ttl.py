"""Deletes tasks that have ended once their ttlSecondsAfterFinished has passed. Kubernetes collects what they own."""

from __future__ import annotations

import structlog

from aura_operator.clock import Clock
from aura_operator.errors import ContentRejectedError, NotFoundError
from aura_operator.store.interface import Store
from aura_operator.store.resources import TASKS
from aura_operator.store.view import TaskView

log = structlog.get_logger()


class TimeToLive:
    """Deletes a task whose time has come."""

    resource = TASKS

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def reconcile(self, seen: TaskView) -> float | None:
        due = due_at(seen)
        if due is None or self._clock.now() < due:
            return due
        try:
            await self._store.delete(seen.ref, uid=seen.uid)
        except NotFoundError:
            return None
        except ContentRejectedError as error:  # admission: it has effects that are unresolved
            log.warning("not deleted after its TTL", task=str(seen.ref), error=str(error))
            return None
        log.info("deleted after its TTL", task=str(seen.ref))
        return None


def due_at(task: TaskView) -> float | None:
    """When a task is to be deleted (Unix seconds); None if never, not yet known, or done already."""
    if task.ttl_seconds is None or task.finished_at is None or task.deleting or not task.phase.terminal:
        return None
    return task.finished_at + task.ttl_seconds
