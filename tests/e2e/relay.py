"""A TCP relay that can hold what a client has sent: a network that delivers late, after the sender is long dead.

Owns the bytes between the two; knows no protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit


@dataclass(kw_only=True)
class Relay:
    """Passes everything on, but holds the first piece that contains `marker`, and what follows it, until `release`."""

    host: str
    port: int
    marker: bytes
    url: str = ""
    owned: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection(self.host, self.port)
        back = asyncio.create_task(_copy(upstream_reader, writer))
        try:
            while piece := await reader.read(65536):
                if self.marker in piece and not self.owned.is_set():
                    self.owned.set()
                    await self.release.wait()
                upstream_writer.write(piece)
                await upstream_writer.drain()
            # The sender is gone; what it sent is answered all the same, to nobody.
            await back
        except ConnectionError:
            back.cancel()
        finally:
            upstream_writer.close()
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        if not writer.is_closing():
            writer.write(piece)


@asynccontextmanager
async def relay(url: str, marker: bytes) -> AsyncIterator[Relay]:
    """A relay in front of `url`, for as long as the block lasts."""
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    made = Relay(host=parts.hostname, port=parts.port, marker=marker)
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(made.serve(reader, writer))
        connections.add(connection)
        connection.add_done_callback(connections.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    made.url = urlunsplit(parts._replace(netloc=f"127.0.0.1:{port}"))
    try:
        yield made
    finally:
        listener.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
