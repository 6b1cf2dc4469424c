"""Lists all that is watched, and tells it as events would: what was missed is seen, what is gone is forgotten.

Owns the lists, one a kind and namespace. What is done about an object is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from aura_operator.clock import Clock
from aura_operator.controller.indexes.known import Known
from aura_operator.controller.indexes.objects import ref_of
from aura_operator.controller.reconciler import VIEWS
from aura_operator.core.lifecycle import Phase
from aura_operator.errors import StoreError
from aura_operator.store.approvals import PENDING, ApprovalView
from aura_operator.store.interface import Selection, Store
from aura_operator.store.resources import Manifest, Ref, Resource
from aura_operator.store.view import TaskView

log = structlog.get_logger()

Listed = Callable[[Ref, Manifest, float], None]
"""Takes an object and when its list began (boot clock). Raises nothing."""


class Resync:
    """`namespaces` empty: all of them. `missing` is called for what is known and stood in no list."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        known: Known,
        *,
        namespaces: Sequence[str],
        listed: Listed,
        missing: Callable[[Ref], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._known = known
        self._namespaces = tuple(namespaces)
        self._listed = listed
        self._missing = missing
        self.turned_at = clock.boot()  # when it last had something to do, or was told that there is nothing

    def turned(self) -> None:
        self.turned_at = self._clock.boot()

    async def run(self) -> None:
        began = self._clock.boot()
        number = 0
        for resource in VIEWS:
            for namespace in self._namespaces or (None,):
                number += await self._list(resource, namespace)
        log.info("resynced", objects=number, seconds=round(self._clock.boot() - began, 3))

    async def _list(self, resource: Resource, namespace: str | None) -> int:
        """How many there are; a list that can't be had now holds up no other."""
        self.turned()
        began = self._clock.boot()
        selection = Selection(resource=resource, namespace=namespace)
        listed: set[Ref] = set()
        continue_token: str | None = None
        try:
            while True:
                page = await self._store.list(selection, continue_token=continue_token)
                for item in page.items:
                    ref = ref_of(resource, item)
                    listed.add(ref)
                    self._listed(ref, item, began)
                continue_token = page.continue_token
                if continue_token is None:
                    break
        except StoreError as error:
            log.warning("not resynced", resource=resource.plural, namespace=namespace, error=str(error))
            return len(listed)
        for ref in list(self._known.missing(resource, listed, namespace)):
            self._missing(ref)
        return len(listed)


def urgent(seen: object) -> bool:
    """Whether an object can't wait behind thousands that only want a word or their deletion."""
    match seen:
        case TaskView(phase=phase):
            return phase in (Phase.RUNNING, Phase.WAITING)
        case ApprovalView(phase=phase):
            return phase == PENDING
        case _:
            return False
