"""The HTTP probes of a process: /healthz and /readyz. Owns the little server; what is true is asked of the process."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import structlog
from aiohttp import web

from aura_operator.errors import ConfigurationError

log = structlog.get_logger()

Trouble = Callable[[], str | None]
"""Says in a sentence what is wrong; None if nothing is."""


class _Answer:
    """Answers one probe: 200, or 503 with the reason as its text. Logs each change of the answer once."""

    def __init__(self, probe: str, trouble: Trouble) -> None:
        self._probe = probe
        self._trouble = trouble
        self._said: str | None = None

    async def handle(self, _: web.Request) -> web.Response:
        why = self._trouble()
        # A count in the reason goes on counting: that is no change.
        gist = None if why is None else re.sub(r"\d+", "#", why)
        if gist != self._said:
            self._said = gist
            if why is None:
                log.info("probe answers ok", probe=self._probe)
            else:
                log.warning("probe answers no", probe=self._probe, why=why)
        return web.Response(text="ok\n") if why is None else web.Response(status=503, text=f"{why}\n")


@asynccontextmanager
async def serve(host: str, port: int, *, unhealthy: Trouble, not_ready: Trouble) -> AsyncIterator[int]:
    """Serves the probes for the time of the block; yields the port (that which was free, for port 0).

    Any answer at all shows that the event loop turns. Raises ConfigurationError if it can't listen there.
    """
    app = web.Application()
    app.router.add_get("/healthz", _Answer("/healthz", unhealthy).handle)
    app.router.add_get("/readyz", _Answer("/readyz", not_ready).handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigurationError(
                f"the probes can't be served at {host}:{port}: {error.strerror}; "
                "choose --probe-host and --probe-port (0: any free one)"
            ) from error
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
