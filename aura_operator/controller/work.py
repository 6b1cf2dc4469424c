"""The objects that wait to be looked at. Owns who is next: each object once at a time, the urgent ones first.

Namespaces don't wait for one another: where looks don't end, since rights are missing there, only that one stands.
What is done about an object is not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aura_operator.store.resources import Ref

AT_ONCE = 32  # of one namespace
KEPT = 500  # of one namespace; beyond that only names are kept, and an object is read when its turn comes

Look = Callable[[Ref, Any], Awaitable[None]]
"""Looks at an object, as it was seen (None: it has to be read). Raises nothing."""


@dataclass(slots=True)
class _Lane:
    """One namespace. `again` holds what came for an object while it was being looked at, and whether that can wait."""

    urgent: dict[Ref, Any] = field(default_factory=dict)
    rest: dict[Ref, Any] = field(default_factory=dict)
    running: set[Ref] = field(default_factory=set)
    again: dict[Ref, tuple[Any, bool]] = field(default_factory=dict)

    def put(self, ref: Ref, seen: Any, *, urgent: bool) -> None:
        if ref in self.running:
            self.again[ref] = seen, urgent or self.again.get(ref, (None, False))[1]
            return
        urgent = urgent or ref in self.urgent
        if urgent:
            self.rest.pop(ref, None)
        queue = self.urgent if urgent else self.rest
        queue[ref] = seen if len(queue) < KEPT or queue.get(ref) is not None else None

    def take(self) -> tuple[Ref, Any] | None:
        """The next one, now running; None if there is none, or enough are running."""
        queue = self.urgent or self.rest
        if not queue or len(self.running) >= AT_ONCE:
            return None
        ref = next(iter(queue))
        self.running.add(ref)
        return ref, queue.pop(ref)

    def done(self, ref: Ref) -> None:
        self.running.discard(ref)
        if ref in self.again:
            seen, urgent = self.again.pop(ref)
            self.put(ref, seen, urgent=urgent)


class Work:
    """Objects by namespace. What is put for an object that waits already replaces what was seen of it."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._lanes: dict[str, _Lane] = {}
        self._group: asyncio.TaskGroup | None = None

    def soon(self, ref: Ref, seen: Any = None) -> None:
        """Before all that can wait."""
        lane = self._lane(ref)
        lane.put(ref, seen, urgent=True)
        self._start(lane)

    def later(self, ref: Ref, seen: Any = None) -> None:
        """After all that can't wait."""
        lane = self._lane(ref)
        lane.put(ref, seen, urgent=False)
        self._start(lane)

    async def run(self) -> None:
        """Looks at what was put and will be, for ever."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for lane in self._lanes.values():
                    self._start(lane)
                await asyncio.Event().wait()
            finally:
                self._group = None  # what comes while it ends is looked at by nobody

    def _lane(self, ref: Ref) -> _Lane:
        return self._lanes.setdefault(ref.namespace, _Lane())

    def _start(self, lane: _Lane) -> None:
        while self._group is not None and (taken := lane.take()) is not None:
            self._group.create_task(self._one(lane, *taken))

    async def _one(self, lane: _Lane, ref: Ref, seen: Any) -> None:
        try:
            await self._look(ref, seen)
        finally:
            lane.done(ref)
        self._start(lane)
