"""Objects to look at again at a time. Owns the order only; the latest time given for an object counts."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable

from aura_operator.store.clock import Clock
from aura_operator.store.resources import Ref
from aura_operator.store.wake import Wake

AT_ONCE = 32
LONGEST_PAUSE_SECONDS = 60.0


class Schedule:
    """Times (Unix seconds) at which objects are due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str, Ref]] = []
        self._due: dict[str, float] = {}
        self._wake = Wake()

    def at(self, ref: Ref, due: float | None) -> None:
        """Looks at the object at `due` (None: not by itself); replaces what was said before."""
        key = str(ref)
        if due is None:
            self._due.pop(key, None)
        elif self._due.get(key) != due:
            self._due[key] = due
            heapq.heappush(self._heap, (due, key, ref))
            self._wake.set()

    async def run(self, look: Callable[[Ref], Awaitable[None]]) -> None:
        """Calls `look` for each object that becomes due, for ever; `look` raises nothing."""
        while True:
            due = self._take_due()
            if due:
                await asyncio.gather(*(look(ref) for ref in due))
                continue
            pause = self._heap[0][0] - self._clock.now() if self._heap else LONGEST_PAUSE_SECONDS
            await self._wake.wait(max(0.0, min(pause, LONGEST_PAUSE_SECONDS)))

    def _take_due(self) -> list[Ref]:
        now = self._clock.now()
        taken: list[Ref] = []
        while self._heap and self._heap[0][0] <= now and len(taken) < AT_ONCE:
            due, key, ref = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                taken.append(ref)
        return taken
