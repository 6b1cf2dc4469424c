"""A bell that wakes one waiter: rung any number of times, heard once."""

from __future__ import annotations

import asyncio


class AutoResetEvent:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Returns once it was set since the last call, or after `seconds` (None: waits without end)."""
        if not self._event.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._event.wait()
            except TimeoutError:
                pass
        self._event.clear()
