"""Runs the fault proxy beside a test that blocks its own loop. Owns the thread; the proxy itself is in `proxy`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from aura_operator.testing.proxy import FaultProxy

T = TypeVar("T")


class ProxyThread:
    """`with ProxyThread(**arguments) as thread:` runs a FaultProxy in a loop of its own, for tests that block theirs.

    Rules, hooks and the log are used as they are on `thread.proxy`; coroutines go through `run`. Hooks run in the
    proxy's thread.
    """

    def __init__(self, **arguments: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self.proxy = FaultProxy(**arguments)

    def run(self, work: Coroutine[Any, Any, T], *, timeout_seconds: float = 30) -> T:
        """Runs a coroutine of the proxy, such as `proxy.down()`, and returns what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self.proxy.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.run(self.proxy.__aexit__(kind, error, trace))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
