"""The HTTP probes of a process: /healthz and /readyz. Owns the little server; what is true is asked of the process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def serve(host: str, port: int, *, healthy: Callable[[], bool], ready: Callable[[], bool]) -> AsyncIterator[int]:
    """Serves the probes for the time of the block; yields the port (that which was free, for port 0)."""

    def answer(holds: Callable[[], bool]) -> Callable[[web.Request], object]:
        async def handle(_: web.Request) -> web.Response:
            return web.Response(text="ok\n") if holds() else web.Response(status=503, text="no\n")

        return handle

    app = web.Application()
    app.router.add_get("/healthz", answer(healthy))  # type: ignore[arg-type]
    app.router.add_get("/readyz", answer(ready))  # type: ignore[arg-type]
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
