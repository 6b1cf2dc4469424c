"""Takes running tasks from owners that are proven dead, for anybody to claim. The proof is owners.py's."""

from __future__ import annotations

import structlog

from aura_operator.clock import Clock
from aura_operator.controller.owners import Owners
from aura_operator.core.entries import Proof
from aura_operator.core.instants import UnixSeconds
from aura_operator.core.lifecycle import Phase
from aura_operator.core.ownership import Owner
from aura_operator.errors import NotFoundError
from aura_operator.store.commit import get_retrying, try_commit
from aura_operator.store.conditions import Condition, updated
from aura_operator.store.events import EventRecorder, EventType
from aura_operator.store.interface import Store
from aura_operator.store.leases import lease_ref
from aura_operator.store.resources import TASKS
from aura_operator.store.task_fields import StatusFields
from aura_operator.store.task_repairs import orphan
from aura_operator.store.view import TaskView

log = structlog.get_logger()


class Orphaning:
    """Frees a task of a dead owner."""

    resource = TASKS

    def __init__(
        self, store: Store, clock: Clock, owners: Owners, events: EventRecorder, *, operator_namespace: str
    ) -> None:
        self._store = store
        self._clock = clock
        self._owners = owners
        self._events = events
        self._operator_namespace = operator_namespace

    async def reconcile(self, seen: TaskView) -> float | None:
        if seen.phase is not Phase.RUNNING or seen.owner is None:
            return None
        if self._owners.proof(seen.owner, self._clock.boot()) is None:
            return None
        proof = await self._confirmed(seen.owner)
        if proof is None:
            return None
        now = self._clock.now()
        why = words(seen.owner, proof)
        write = orphan(seen, proof, now=now, fields=orphaned(seen, why, now))
        manifest = await try_commit(self._store, write, self._clock)
        if manifest is not None:
            self._owners.ended(seen.uid)
            log.info("orphaned", task=str(seen.ref), epoch=seen.epoch, worker=seen.owner.worker, proof=proof.value)
            await self._events.record(manifest, "Orphaned", why, event_type=EventType.WARNING)
        return None

    async def _confirmed(self, owner: Owner) -> Proof | None:
        """The proof once more, from a quorum read of the Lease."""
        try:
            lease = await get_retrying(self._store, lease_ref(self._operator_namespace, owner.worker), self._clock)
            self._owners.lease(lease, self._clock.boot())
        except NotFoundError:
            self._owners.lease_gone(owner.worker)
        return self._owners.proof(owner, self._clock.boot())


def words(owner: Owner, proof: Proof) -> str:
    """What is said of a task that was taken from its owner."""
    return f"its worker {owner.worker} ended ({proof.value}); wants a worker"


def orphaned(task: TaskView, why: str, now: UnixSeconds) -> StatusFields:
    """The fields of a task that was taken from its owner."""
    parked = Condition(type="Parked", holds=False, reason="Orphaned", message=why)
    return {"summary": why, "conditions": updated(task.conditions, parked, now=now)}
