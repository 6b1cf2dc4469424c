"""The connection to one MCP server: made when needed, made anew when lost, closed by the task that opened it.

Owns connecting, listing tools and noticing the end. It makes no calls, and knows nothing of outcomes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import httpx2
import structlog
from mcp import Client, MCPError
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Tool, ToolListChangedNotification

from aura_operator.agent.mcp.servers import ServerSpec, Transport
from aura_operator.agent.mcp.transport_http import LARGEST_ANSWER_BYTES, HttpWire
from aura_operator.agent.mcp.transport_stdio import Child, child_streams
from aura_operator.agent.redaction import Redactor
from aura_operator.errors import ToolServerError

_MOST_PAGES = 100  # of a tool list: a server that always names a next page must not hold up a task for ever
_CLOSE_SECONDS = 10.0
_PATIENCE_SECONDS = 0.5

_log = structlog.get_logger(__name__)

# The library warns of a server that answers 202 where a session ends. Whatever a server says then, it is left.
logging.getLogger("mcp.client.streamable_http").addFilter(
    lambda record: not record.getMessage().startswith("Session termination failed")
)


@dataclass(slots=True, eq=False)
class Link:
    """One life of a connection, of no use any more once it is `lost`. `stirred`: its owner has something to do."""

    session: ClientSession = field(init=False)
    client: Client = field(init=False)
    lost: bool = False
    stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def lose(self) -> None:
        """Say that the connection is gone: the next call makes another."""
        self.lost = True
        self.stirred.set()

    async def hear(self, message: object) -> None:
        """Takes a notification of the server."""
        if isinstance(message, ToolListChangedNotification):
            self.stirred.set()


class Connection:
    """Keeps a link to one server. May be used by any number of tasks; `on_tools` hears every fresh tool list."""

    def __init__(self, spec: ServerSpec, redactor: Redactor, on_tools: Callable[[Sequence[Tool]], None]) -> None:
        self._spec = spec
        self._redactor = redactor
        self._on_tools = on_tools
        self._link: Link | None = None
        self._connecting: asyncio.Future[Link] | None = None
        # MCP's client has to be left by the task that entered it: so each link has a task of its own.
        self._owners: set[asyncio.Task[None]] = set()
        self._closed = False

    async def link(self) -> Link:
        """The living link, after connecting if need be. Raises ToolServerError within the server's timeout."""
        if self._closed:
            raise ToolServerError(f"MCP server {self._spec.name!r}: this connection was closed")
        if self._link is not None and not self._link.lost:
            return self._link
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_future()
            owner = asyncio.create_task(self._own(self._connecting), name=f"mcp {self._spec.name}")
            self._owners.add(owner)
            owner.add_done_callback(self._owners.discard)
        try:
            # The owner has the same limit, but may need longer to get rid of what doesn't answer.
            async with asyncio.timeout(self._spec.timeout_seconds + _PATIENCE_SECONDS):
                # Shielded: others wait for the same connection, and one that loses patience must not take it from them.
                return await asyncio.shield(self._connecting)
        except TimeoutError as error:
            raise self._unreachable(error, "") from error

    async def relist(self) -> None:
        """Hears the tools as they are now: over plain HTTP nothing tells that a server came back as another one.

        Raises ToolServerError within the server's timeout.
        """
        link = await self.link()
        try:
            async with asyncio.timeout(self._spec.timeout_seconds):
                self._on_tools(await self._listed(link.client))
        except Exception as error:  # noqa: BLE001 - MCP's client raises groups of anything; all mean "not connected"
            _log.info("mcp connection ended", server=self._spec.name, error=type(error).__name__)
            link.lose()
            await self.link()  # connects and lists anew

    async def aclose(self) -> None:
        """Leaves the server. A child process has ended when this returns."""
        self._closed = True
        if self._link is not None:
            self._link.lose()
        owners = set(self._owners)
        if not owners:
            return
        if self._connecting is not None:
            for owner in owners:
                owner.cancel()
        _, stuck = await asyncio.wait(owners, timeout=_CLOSE_SECONDS)
        for owner in stuck:
            owner.cancel()
        await asyncio.gather(*owners, return_exceptions=True)

    async def _own(self, ready: asyncio.Future[Link]) -> None:
        """One link from its beginning to its end."""
        child: list[Child] = []
        link = Link()
        try:
            async with AsyncExitStack() as resources:
                async with asyncio.timeout(self._spec.timeout_seconds):
                    client = await self._open(resources, link, child)
                    self._on_tools(await self._listed(client))
                self._link, self._connecting = link, None
                ready.set_result(link)
                while await link.stirred.wait() and not link.lost:
                    link.stirred.clear()
                    self._on_tools(await self._listed(client))
        except Exception as error:  # noqa: BLE001 - MCP's client raises groups of anything; all mean "not connected"
            if ready.done():
                _log.info("mcp connection ended", server=self._spec.name, error=type(error).__name__)
            else:
                ready.set_exception(self._unreachable(error, child[0].said if child else ""))
                ready.exception()  # looked at: with no waiter left, asyncio would complain
        finally:
            link.lose()
            if self._connecting is ready:
                self._connecting = None
            if not ready.done():
                ready.set_exception(ToolServerError(f"MCP server {self._spec.name!r}: closed while connecting"))
                ready.exception()

    async def _open(self, resources: AsyncExitStack, link: Link, child: list[Child]) -> Client:
        match self._spec.transport:
            case Transport.STREAMABLE_HTTP:
                # Compressed answers would hide their size from the limit.
                headers = {"accept-encoding": "identity", **self._spec.headers}
                http = httpx2.AsyncClient(transport=HttpWire(self._spec.timeout_seconds), headers=headers, timeout=None)
                await resources.enter_async_context(http)
                streams = streamable_http_client(
                    self._spec.url or "", http_client=http, max_sse_event_size=LARGEST_ANSWER_BYTES
                )
            case Transport.STDIO:
                streams = child_streams(self._spec, child.append, link.lose)
        client = await resources.enter_async_context(Client(streams, cache=None, message_handler=link.hear))
        link.session, link.client = client.session, client
        return client

    async def _listed(self, client: Client) -> list[Tool]:
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                return tools
        raise ToolServerError(
            f"MCP server {self._spec.name!r} at {self._spec.address} lists tools without end "
            f"({_MOST_PAGES} pages and more): fix the server, or remove it from the agent"
        )

    def _unreachable(self, error: Exception, said: str) -> ToolServerError:
        if isinstance(error, ToolServerError):
            return error
        seconds = self._spec.timeout_seconds
        why = f"no answer within {seconds:g} s" if isinstance(error, TimeoutError) else _cause(error)
        last_words = f"; it said: {said}" if said else ""
        remedy = {
            Transport.STREAMABLE_HTTP: "check that it runs, that spec.mcpServers[].url is right and ends in its MCP "
            "path (often /mcp), and that headersSecretRef lets this agent in",
            Transport.STDIO: "check spec.mcpServers[].command, args and env, and that the worker's image has it",
        }[self._spec.transport]
        return ToolServerError(
            self._redactor.scrub_error(
                f"MCP server {self._spec.name!r} at {self._spec.address} can't be used: {why}{last_words}; {remedy}"
            )
        )


def _cause(error: BaseException) -> str:
    """The words of the first real error inside the groups that anyio makes."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return str(error.error.message)
    return str(error) or type(error).__name__
