"""The API server behind the fault proxy. Owns asking it what a client asked, to the byte; decides nothing."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

import aiohttp
import yarl
from aiohttp import hdrs, web

from aura_operator.testing.proxy_rules import SeenRequest

# These describe one connection, not the message, so each side of the proxy has its own.
_HOP_BY_HOP = {"host", "connection", "keep-alive", "transfer-encoding", "content-length", "te", "trailer", "upgrade"}
_NOT_OURS = [hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.USER_AGENT, hdrs.CONTENT_TYPE]


def end_to_end(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers that belong to the message."""
    return [(key, value) for key, value in headers.items() if key.lower() not in _HOP_BY_HOP]


class Upstream:
    """`url` is the API server's, `ca` its authority."""

    def __init__(self, url: str, ca: Path) -> None:
        self._url = url.rstrip("/")
        self._tls = ssl.create_default_context(cafile=str(ca))

    async def open(self) -> None:
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        forever = aiohttp.ClientTimeout(total=None, sock_connect=10)
        self._session = aiohttp.ClientSession(connector=connector, timeout=forever, auto_decompress=False)

    async def aclose(self) -> None:
        await self._session.close()

    async def answer(self, incoming: web.Request, request: SeenRequest) -> aiohttp.ClientResponse | None:
        """The answer, with its body read unless it is a watch's; None where the connection failed."""
        try:
            answer = await self._session.request(
                incoming.method,
                yarl.URL(self._url + incoming.raw_path, encoded=True),
                headers=end_to_end(incoming.headers),
                data=request.body or None,
                allow_redirects=False,
                skip_auto_headers=_NOT_OURS,
            )
            if not request.is_watch:
                await answer.read()
        except aiohttp.ClientConnectionError:
            return None
        return answer
