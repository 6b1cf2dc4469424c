"""One run of something for all who ask for it at the same time, as Go's singleflight.

Owns the running ones only: what came of one is kept, if at all, by who made it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """Runs by key. Nothing is kept of one that has ended, so whoever asks after a failure tries again."""

    def __init__(self) -> None:
        self._running: dict[K, asyncio.Task[T]] = {}

    async def do(self, key: K, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The end of the run for `key` that goes on, or else of the one that begins now.

        It goes on if one who waits for it is cancelled, since it isn't only his.
        """
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.create_task(make(), name=f"for all who need {key}")
            running.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(running)

    async def cancel(self) -> None:
        """Ends all that runs."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, key: K, running: asyncio.Task[T]) -> None:
        del self._running[key]
        if not running.cancelled():
            running.exception()  # looked at: everybody who waited may have been cancelled
