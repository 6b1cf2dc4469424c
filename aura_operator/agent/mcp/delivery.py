"""One tool call on its way to a server: whether its first byte has gone out, and whether anybody still wants it.

Owns that knowledge. The transports consult it at the last moment; the call that made it reads it afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from aura_operator.agent.ports import BeforeSend


class GivenUpError(Exception):
    """The call was abandoned before it was sent, so it must not be sent any more."""


class Delivery:
    """Made for one call, and passed to the transport through `CURRENT`, since MCP's session is in between."""

    def __init__(self, before_send: BeforeSend) -> None:
        self._before_send = before_send
        self._given_up = False
        self._timeouts: set[asyncio.Timeout] = set()
        self.sent = False
        self.refused: BaseException | None = None
        self.http_status: int | None = None
        self.named_session = False  # the request was one of an MCP session, which the server may have forgotten
        self.answered = False  # the server's answer arrived whole
        self.oversized = False

    async def authorize(self) -> None:
        """Awaited by the transport right before the first byte. Raises what `before_send` raises; then nothing is sent.

        A request that has to go out anew (a redirect) is asked about again.
        """
        if self._given_up:
            raise GivenUpError("the caller no longer waits")
        try:
            await self._before_send()
        except Exception as error:
            self.refused = error
            raise
        if self._given_up:
            raise GivenUpError("the caller no longer waits")
        self.sent = True

    def give_up(self) -> None:
        """Nobody waits any more: what wasn't sent never is, and whoever waits for an answer stops at once."""
        self._given_up = True
        for timeout in self._timeouts:
            timeout.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def wanted(self) -> AsyncIterator[None]:
        """Bounds a wait for the answer by the caller's interest. Raises TimeoutError when that ends."""
        async with asyncio.timeout(0 if self._given_up else None) as timeout:
            self._timeouts.add(timeout)
            try:
                yield
            finally:
                self._timeouts.discard(timeout)


CURRENT: ContextVar[Delivery | None] = ContextVar("aura_tool_delivery", default=None)
