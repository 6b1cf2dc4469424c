"""Objects to look at again at a time. Owns the order only; the latest time given for an object counts."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from aura_operator.auto_reset import AutoResetEvent
from aura_operator.clock import Clock
from aura_operator.store.resources import Ref

LONGEST_PAUSE_SECONDS = 60.0


class Schedule:
    """Times (Unix seconds) at which objects are due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, str, Ref]] = []
        self._due: dict[str, float] = {}
        self._wake = AutoResetEvent()

    def at(self, ref: Ref, due: float | None) -> None:
        """Makes the object due at `due` (None: never); replaces what was said before."""
        key = str(ref)
        if due is None:
            self._due.pop(key, None)
        elif self._due.get(key) != due:
            self._due[key] = due
            heapq.heappush(self._heap, (due, key, ref))
            self._wake.set()

    async def run(self, look: Callable[[Ref], None]) -> None:
        """Calls `look` for each object that becomes due, without end."""
        while True:
            for ref in self._take_due():
                look(ref)
            pause = self._heap[0][0] - self._clock.now() if self._heap else LONGEST_PAUSE_SECONDS
            await self._wake.wait(max(0.0, min(pause, LONGEST_PAUSE_SECONDS)))

    def _take_due(self) -> list[Ref]:
        now = self._clock.now()
        taken: list[Ref] = []
        while self._heap and self._heap[0][0] <= now:
            due, key, ref = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                taken.append(ref)
        return taken
