"""Where a controller hears of changes from. Owns the port, its form over any Store, and its supervision.

The form over kopf is watching.py's. Nothing depends on hearing of each change: a resync finds what was missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from aura_operator.clock import Clock
from aura_operator.foreign import contained
from aura_operator.store.follow import Change, Seen, follow
from aura_operator.store.interface import Selection, Store
from aura_operator.store.resources import Resource

log = structlog.get_logger()

RESTART_SECONDS = 2.0

Tell = Callable[[Resource, Seen], None]
"""Takes what was seen of a kind. Returns at once, and raises nothing."""


class EventSource(Protocol):
    async def run(self, resources: Sequence[Resource], tell: Tell) -> None:
        """Tells of all objects of these kinds, and of each change, until it is cancelled.

        Each object is told at least once (SET); its end (GONE) where it is known, with at least `metadata` of the
        object. SYNCED says that it has begun: from then on changes are told. It never returns in good order: whether
        it raises or returns, it is started anew.
        """
        ...


class StoreEvents:
    """An EventSource over any Store. `namespaces` empty: all of them."""

    def __init__(self, store: Store, clock: Clock, namespaces: Sequence[str] = ()) -> None:
        self._store = store
        self._clock = clock
        self._namespaces = tuple(namespaces)

    async def run(self, resources: Sequence[Resource], tell: Tell) -> None:
        async with asyncio.TaskGroup() as group:
            for resource in resources:
                for namespace in self._namespaces or (None,):
                    group.create_task(self._follow(Selection(resource=resource, namespace=namespace), tell))

    async def _follow(self, selection: Selection, tell: Tell) -> None:
        async for seen in follow(self._store, selection, self._clock):
            tell(selection.resource, seen)


class Watch:
    """Keeps an EventSource running. `trouble` says why nothing can be heard from it now, None if all is well."""

    def __init__(self, events: EventSource, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self.trouble: str | None = "the watch hasn't begun yet"

    async def run(self, resources: Sequence[Resource], tell: Tell) -> None:
        """Runs the source for ever; starts it anew whenever it ends."""

        def heard(resource: Resource, seen: Seen) -> None:
            self.trouble = None
            if seen.change is not Change.SYNCED:
                tell(resource, seen)

        while True:
            try:
                with contained("it"):
                    await self._events.run(resources, heard)
                self.trouble = "the watch ended by itself; it is started anew"
            except Exception as error:  # noqa: BLE001 - whatever ended it, the controller must see events again
                self.trouble = f"the watch failed and is started anew: {error!r}"
            log.error("no events", why=self.trouble)
            await self._clock.sleep(RESTART_SECONDS)
