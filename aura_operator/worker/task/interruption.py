"""Ends a wait before its time, for a reason. Owns how it is asked for from outside, and heard by the waiting code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum


class Reason(Enum):
    """Why a task goes no further towards its run."""

    CANCEL = "cancel"  # a person wants its end
    DRAIN = "drain"  # this worker goes


class Interrupted(Exception):
    """Raised in the block that was interrupted."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Interruption:
    """May be asked for at any time. The block that is open then hears it at once, else the next one that opens."""

    def __init__(self) -> None:
        self._reason: Reason | None = None
        self._block: asyncio.Timeout | None = None

    @property
    def asked(self) -> Reason | None:
        return self._reason

    def ask(self, reason: Reason) -> None:
        """The first reason counts."""
        if self._reason is not None:
            return
        self._reason = reason
        if self._block is not None:
            self._block.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """A block that can be interrupted: what it waits for is cancelled, and Interrupted raised."""
        self._raise_if_asked()
        block = asyncio.timeout(None)
        try:
            async with block:
                self._block = block
                yield
        except TimeoutError:
            if not block.expired():
                raise
        finally:
            self._block = None
        # Also where the block came to its end just when it was asked for.
        self._raise_if_asked()

    def _raise_if_asked(self) -> None:
        if self._reason is not None:
            raise Interrupted(self._reason) from None
