"""Contact with the workers' Leases, on which every proof of death rests, and the running tasks that dead owners leave.

Owns the two loops that look at Leases. What a proof is: owners.py; what is done about it: orphans.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from aura_operator.clock import Clock
from aura_operator.controller.owners import Owners
from aura_operator.core.lifecycle import Phase
from aura_operator.core.ownership import Owner
from aura_operator.errors import StoreError
from aura_operator.store.follow import Change, follow
from aura_operator.store.interface import Selection, Store
from aura_operator.store.leases import WORKER_SELECTOR
from aura_operator.store.resources import LEASES, TASKS, Ref
from aura_operator.store.view import TaskView

log = structlog.get_logger()

CONTACT_SECONDS = 1.0


class Contact:
    """An index of running tasks by their owners, and what is heard of the owners."""

    resource = TASKS

    def __init__(self, store: Store, clock: Clock, owners: Owners, operator_namespace: str) -> None:
        self._store = store
        self._clock = clock
        self._owners = owners
        self._selection = Selection(resource=LEASES, namespace=operator_namespace, labels=WORKER_SELECTOR)
        self._told: set[Owner] = set()
        self.looked_at = clock.boot()  # when the loop turned last
        self.answered_at = clock.boot()  # when the server answered it last

    def seen(self, task: TaskView) -> None:
        if task.phase is Phase.RUNNING and task.owner is not None:
            self._owners.runs(task.uid, task.ref, task.owner, self._clock.boot())
        else:
            self._owners.ended(task.uid)

    def gone(self, ref: Ref, uid: str) -> Sequence[Ref]:
        self._owners.ended(uid)
        return ()

    def left_behind(self) -> list[Ref]:
        """The running tasks of all who are dead by what is known now."""
        return [ref for owner in self._dead() for ref in self._owners.tasks(owner)]

    async def run(self, look: Callable[[Ref], None]) -> None:
        """Keeps contact for ever. Calls `look` for the tasks of an owner once that is found dead."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(look))
            group.create_task(self._keep(look))

    async def _follow(self, look: Callable[[Ref], None]) -> None:
        """A restarted container shows at once: its Lease has another incarnation."""
        async for seen in follow(self._store, self._selection, self._clock):
            if seen.change is Change.GONE:
                self._owners.lease_gone(seen.object["metadata"]["name"])
            elif seen.change is Change.SET:
                self._owners.lease(seen.object, self._clock.boot())
                self._tell(look)

    async def _keep(self, look: Callable[[Ref], None]) -> None:
        """Looks at all Leases every second: that is what "uninterrupted contact" means here."""
        while True:
            self.looked_at = self._clock.boot()
            try:
                page = await self._store.list(self._selection)
            except StoreError as error:
                log.debug("no contact", error=str(error))
            else:
                now = self.answered_at = self._clock.boot()
                self._owners.contact(now)
                for lease in page.items:
                    self._owners.lease(lease, now)
                self._tell(look)
            await self._clock.sleep(CONTACT_SECONDS)

    def _tell(self, look: Callable[[Ref], None]) -> None:
        dead = set(self._dead())
        for owner in dead - self._told:
            for ref in self._owners.tasks(owner):
                look(ref)
        self._told = dead  # one whose proof a gap in contact has taken away is told again

    def _dead(self) -> list[Owner]:
        now = self._clock.boot()
        return [owner for owner in self._owners.all() if self._owners.proof(owner, now) is not None]
