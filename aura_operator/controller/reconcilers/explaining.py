"""Says of a task that nobody owns why it isn't run: paused, or why no worker takes it. Writes summary and condition.

Owns the checks; each says a sentence or nothing, and the first that applies counts. Starts nothing and moves no phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aura_operator.clock import Clock
from aura_operator.controller.indexes.pending import PendingTasks
from aura_operator.controller.owners import Owners
from aura_operator.core import codec
from aura_operator.core.instants import UnixSeconds
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.ownership import LeaseView
from aura_operator.store.commit import try_commit
from aura_operator.store.conditions import Condition, holds, updated
from aura_operator.store.interface import Store
from aura_operator.store.resources import TASKS
from aura_operator.store.task_fields import CANNOT_RUN_NOW, StatusFields
from aura_operator.store.task_repairs import remark
from aura_operator.store.view import TaskView

PATIENCE_SECONDS = 5.0  # a task that nobody takes for longer gets a summary that says why
PAUSED = "paused; it starts when spec.desired is Run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """A task as it was read, since when it has been seen to be Pending (None: it isn't), the Leases of live workers,
    and the controller's clock; times in Unix seconds of that clock."""

    task: TaskView
    pending_since: float | None
    workers: Sequence[LeaseView]
    now: UnixSeconds


def paused(seen: Gathered) -> str | None:
    return PAUSED if seen.task.desired is Desired.PAUSE else None


def newer(seen: Gathered) -> str | None:
    """No worker that lives knows the journal's schema (and, if none lives, this version doesn't): it is left alone."""
    needed = seen.task.journal.schema if seen.task.journal is not None else 1
    known = max((worker.journal_schema for worker in seen.workers), default=codec.SCHEMA)
    if needed <= known:
        return None
    return f"written by a newer version (schema {needed}, known here: {known}); wants a worker of that version"


def lonely(seen: Gathered) -> str | None:
    return None if seen.workers else "no worker is live; start some"


def given_back(seen: Gathered) -> str | None:
    """The last owner said why, and that holds until the next one tries."""
    return seen.task.summary if seen.task.summary.startswith(CANNOT_RUN_NOW) else None


def queued(seen: Gathered) -> str | None:
    free_slots = sum(worker.free_slots for worker in seen.workers)
    return f"no worker has taken it yet ({len(seen.workers)} live, {free_slots} slots free)"


CHECKS: tuple[Callable[[Gathered], str | None], ...] = (paused, newer, lonely, given_back, queued)


def summary_for(seen: Gathered) -> str | None:
    """What is to be said now of a task that is Pending; None if nothing is (yet)."""
    task = seen.task
    if seen.pending_since is None or (task.deadline is not None and seen.now >= task.deadline):
        return None  # whoever claims it after its deadline ends it
    if task.desired is not Desired.PAUSE and seen.now < seen.pending_since + PATIENCE_SECONDS:
        return None
    return next((said for check in CHECKS if (said := check(seen)) is not None), None)


def pause_of(task: TaskView) -> Condition | None:
    """The condition Paused of a task that nobody owns; None where there is nothing to say."""
    if task.phase not in (Phase.PENDING, Phase.WAITING):
        return None
    if task.desired is Desired.PAUSE:
        return Condition(type="Paused", holds=True, reason="Desired", message="it goes on when spec.desired is Run")
    if holds(task.conditions, "Paused"):
        return Condition(type="Paused", holds=False, reason="Resumed")
    return None


def fields_for(seen: Gathered) -> StatusFields:
    """What of the status is to be written: empty if it says so already."""
    fields: StatusFields = {}
    summary = summary_for(seen)
    if summary is not None and summary != seen.task.summary:
        fields["summary"] = summary
    pause = pause_of(seen.task)
    if pause is not None:
        conditions = updated(seen.task.conditions, pause, now=seen.now)
        if conditions != list(seen.task.conditions):
            fields["conditions"] = conditions
    return fields


def look_again_at(seen: Gathered) -> float | None:
    """When there is something to say that can wait until then."""
    if seen.pending_since is None or seen.now >= seen.pending_since + PATIENCE_SECONDS:
        return None
    return seen.pending_since + PATIENCE_SECONDS


class Explaining:
    """Keeps summary and condition of a task that nobody owns true."""

    resource = TASKS

    def __init__(self, store: Store, clock: Clock, owners: Owners, pending: PendingTasks) -> None:
        self._store = store
        self._clock = clock
        self._owners = owners
        self._pending = pending

    async def reconcile(self, seen: TaskView) -> float | None:
        gathered = Gathered(
            task=seen,
            pending_since=self._pending.since(seen.ref) if seen.phase is Phase.PENDING else None,
            workers=self._owners.live(self._clock.boot()),
            now=self._clock.now(),
        )
        fields = fields_for(gathered)
        if fields:
            await try_commit(self._store, remark(seen, fields=fields), self._clock)
        return look_again_at(gathered)
