"""Calls the tools of an agent's MCP servers, and says truthfully what became of each call.

Owns the catalogue of tools, the call and its outcome. It never repeats a call that the server may have read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

import structlog
from mcp_types import CallToolRequest, CallToolRequestParams, RequestParamsMeta, Tool

from aura_operator.agent import arguments as argument_check
from aura_operator.agent.mcp.catalogue import catalogued
from aura_operator.agent.mcp.connection import Connection, Link
from aura_operator.agent.mcp.delivery import CURRENT, Delivery
from aura_operator.agent.mcp.replies import ANSWER, Reply, Stale, judged
from aura_operator.agent.mcp.servers import ServerSpec
from aura_operator.agent.outcomes import finished
from aura_operator.agent.ports import BeforeSend
from aura_operator.agent.redaction import Redactor
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec
from aura_operator.core.entries import Outcome
from aura_operator.errors import ToolServerError

_CONNECTIONS_PER_CALL = 2  # a link that turns out to be dead is replaced once, before anything was sent

_log = structlog.get_logger(__name__)


class Toolbox:
    """All tools of one agent. May be shared by many tasks and live for hours; calls may run side by side."""

    def __init__(self, servers: tuple[ServerSpec, ...]) -> None:
        self._redactor = Redactor(secret for spec in servers for secret in spec.secrets)
        self._servers = {spec.name: spec for spec in servers}
        self._connections = {spec.name: Connection(spec, self._redactor, self._listener(spec)) for spec in servers}
        self._by_server: dict[str, dict[str, ToolSpec]] = {}
        self._remote_names: dict[str, str] = {}
        self._refused_by: dict[str, dict[str, str]] = {}
        self._calls: set[asyncio.Task[Reply]] = set()

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools by name, as the servers listed them last."""
        return MappingProxyType({name: tool for tools in self._by_server.values() for name, tool in tools.items()})

    async def start(self) -> None:
        """Connects to all servers, side by side, and lists their tools. Raises the first ToolServerError."""
        results = await asyncio.gather(
            *(connection.link() for connection in self._connections.values()), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def fresh(self, tool: str) -> ToolSpec | None:
        """A tool as its server lists it now, None if it is gone. Raises ToolServerError."""
        known = self.tools.get(tool)
        if known is not None:
            await self._connections[known.server].relist()
        return self.tools.get(tool)

    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        """Calls a tool once. What goes wrong is in the outcome; only what `before_send` raises is raised.

        `before_send` is awaited when the connection stands and nothing of the request is out; if it raises, nothing
        is sent. Cancelling the calling task asks the server to stop; what the tool did is then unknown.
        The call's `timeout_seconds` bound all of it, also with a server that never reads.
        """
        spec = self.tools.get(call.tool)
        if spec is None:
            return self._not_made(call, argument_check.unknown_tool(call.tool, self.tools))
        problem = argument_check.check(call.arguments, spec)
        if problem is not None:
            return self._not_made(call, problem)
        request = CallToolRequest(
            params=CallToolRequestParams(
                name=self._remote_names[call.tool],
                arguments=argument_check.parsed(call.arguments),
                _meta=cast(RequestParamsMeta, dict(call.meta)),
            )
        )
        deadline = asyncio.get_running_loop().time() + call.timeout_seconds
        reply = await self._delivered(spec, request, before_send, deadline)
        return reply.outcome(spec, self._redactor, call.limit_bytes)

    async def aclose(self) -> None:
        """Stops the calls that still run and leaves all servers. Child processes have ended when this returns."""
        for call in self._calls:
            call.cancel()
        await asyncio.gather(
            *self._calls, *(connection.aclose() for connection in self._connections.values()), return_exceptions=True
        )

    def _not_made(self, call: ToolCall, why: str) -> ToolOutcome:
        return finished(Outcome.ERROR, why, self._redactor, call.limit_bytes)

    async def _delivered(
        self, spec: ToolSpec, request: CallToolRequest, before_send: BeforeSend, deadline: float
    ) -> Reply:
        reply = Reply(Outcome.NOT_SENT, "the connection to the server was lost before the call was sent")
        for _ in range(_CONNECTIONS_PER_CALL):
            try:
                async with asyncio.timeout_at(deadline):
                    link = await self._connections[spec.server].link()
            except TimeoutError:
                return Reply(Outcome.NOT_SENT, f"{self._address(spec)} could not be reached within the call's time")
            except ToolServerError as error:
                return Reply(Outcome.NOT_SENT, str(error))
            delivery = Delivery(before_send)
            try:
                return await self._waited_for(link, delivery, request, deadline)
            except Stale as stale:
                # Certain that the tool did not run: either nothing was sent, or the server refused it unread.
                link.lose()
                reply = Reply(Outcome.NOT_SENT, f"{self._address(spec)}: {stale}")
        return reply

    async def _waited_for(self, link: Link, delivery: Delivery, request: CallToolRequest, deadline: float) -> Reply:
        """The reply, or what is known when time is up. A server that never reads can't hold the caller."""
        sending = asyncio.create_task(_send(link, delivery, request))
        self._calls.add(sending)
        sending.add_done_callback(self._forget)
        try:
            done, _ = await asyncio.wait({sending}, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
            if done and not sending.cancelled():
                return sending.result()
        finally:
            if not sending.done():
                delivery.give_up()
                sending.cancel()  # MCP's client tells the server
        if not delivery.sent:
            return Reply(Outcome.NOT_SENT, "the call's time was up before it could be sent")
        if sending.cancelled():  # by `aclose`; the caller was not, and has to hear what is known
            return Reply(Outcome.UNKNOWN, "the connection was closed: it may or may not have happened")
        return Reply(Outcome.UNKNOWN, "no answer within the call's time: it may or may not have happened")

    def _forget(self, call: asyncio.Task[Reply]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # looked at: of an abandoned call nobody else asks

    def _address(self, spec: ToolSpec) -> str:
        return f"MCP server {spec.server!r} at {self._servers[spec.server].address}"

    def _listener(self, server: ServerSpec) -> Callable[[Sequence[Tool]], None]:
        def listen(tools: Sequence[Tool]) -> None:
            taken = {name for other, own in self._by_server.items() if other != server.name for name in own}
            offered, remote_names, refused = catalogued(server, tools, taken)
            self._by_server[server.name] = offered
            self._remote_names |= remote_names
            for name, why in refused.items():
                if name not in self._refused_by.get(server.name, {}):
                    _log.warning("tool refused", server=server.name, tool=name, why=why)
            self._refused_by[server.name] = refused

        return listen


async def _send(link: Link, delivery: Delivery, request: CallToolRequest) -> Reply:
    CURRENT.set(delivery)
    return await judged(link.session.send_request(request, ANSWER), delivery)
