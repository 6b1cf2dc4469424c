"""The tools of the effect ledger, over streamable HTTP and stdio: slow, failing, crashing and hanging as asked.

Owns the server and its command line. Each call is on the disk before anything else happens; see `ledger` for the file.
`python -m aura_operator.testing.ledger_server --file FILE [--port 0] [--check-epoch] [--sessions] [--stdio]`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from aura_operator.testing.ledger import EPOCH, RUN, Ledger

_ARGUMENTS = {
    "type": "object",
    "properties": {
        "key": {"type": "string", "description": "Names this effect."},
        "seconds": {"type": "number", "minimum": 0, "description": "How long it takes."},
        "text": {"type": "string", "description": "What it returns."},
        "bytes": {"type": "integer", "minimum": 0, "description": "How much it returns."},
        "fail": {"type": "boolean", "description": "Ends in a tool error."},
        "crash": {"type": "boolean", "description": "The server dies once the start is written down."},
        "hang": {"type": "boolean", "description": "Never ends."},
    },
    "required": ["key"],
    "additionalProperties": False,
}
_PROMISED = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}

_TOOLS = [
    Tool(
        name="read",
        description="Reads something.",
        input_schema=_ARGUMENTS,
        annotations=ToolAnnotations(read_only_hint=True),
    ),
    Tool(
        name="idempotent",
        description="Does something that may be done twice.",
        input_schema=_ARGUMENTS,
        annotations=ToolAnnotations(idempotent_hint=True),
    ),
    Tool(name="once", description="Does something that must not be done twice.", input_schema=_ARGUMENTS),
    Tool(
        name="schema_violation",
        description="Returns what it said it never would.",
        input_schema=_ARGUMENTS,
        output_schema=_PROMISED,
    ),
]


def serve_http(ledger: Ledger, port: int, *, check_epoch: bool, sessions: bool) -> None:
    """Serves until SIGTERM. Prints `{"url": …}` when it listens."""
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it an answer waits 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    app: ASGIApp = _server(ledger, check_epoch=check_epoch).streamable_http_app(stateless_http=not sessions)
    if sessions:
        app = _without_stateless_protocol(app)
    # Clients hold streams open for as long as they live: waiting for them would mean never ending.
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    print(json.dumps({"url": url}), flush=True)  # a client's connection waits in the listener's queue until we serve
    uvicorn.Server(config).run(sockets=[listener])


def _without_stateless_protocol(app: ASGIApp) -> ASGIApp:
    """A server of the time before 2026: it knows sessions only, and a client has to notice."""

    async def older(scope: Scope, receive: Receive, send: Send) -> None:
        version = Headers(scope=scope).get("mcp-protocol-version") if scope["type"] == "http" else None
        if version in MODERN_PROTOCOL_VERSIONS:
            await PlainTextResponse("not found", status_code=404)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return older


def serve_stdio(ledger: Ledger, *, check_epoch: bool) -> None:
    """Serves until the standard input ends."""

    async def serve() -> None:
        server = _server(ledger, check_epoch=check_epoch)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(serve())


def _server(ledger: Ledger, *, check_epoch: bool) -> Server[Any]:
    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=_TOOLS)

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        arguments = params.arguments or {}
        meta: Mapping[str, Any] = dict(params.meta or {})
        if check_epoch and (stale := _stale(ledger, meta)) is not None:
            ledger.append("refused", params.name, arguments, meta)
            return _text(stale, is_error=True)
        ledger.append("start", params.name, arguments, meta)
        try:
            result = await _done(params.name, arguments)
        except asyncio.CancelledError:
            ledger.append("cancelled", params.name, arguments, meta)
            raise
        ledger.append("end", params.name, arguments, meta)
        return result

    return Server("ledger", on_list_tools=list_tools, on_call_tool=call_tool)


def _stale(ledger: Ledger, meta: Mapping[str, Any]) -> str | None:
    """Why a caller is refused. The file is the memory, so a restart forgets nothing."""
    run, epoch = meta.get(RUN), meta.get(EPOCH)
    if run is None or epoch is None:
        return f"a call needs {RUN} and {EPOCH}"
    highest = ledger.highest_epochs().get(run, 0)
    return f"epoch {epoch} is over: run {run} has called with {highest}" if epoch < highest else None


async def _done(tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
    if arguments.get("crash"):
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    if arguments.get("hang"):
        await asyncio.Event().wait()
    await asyncio.sleep(arguments.get("seconds", 0))
    if arguments.get("fail"):
        return _text(f"{tool} of {arguments.get('key')} failed as asked", is_error=True)
    if tool == "schema_violation":
        return CallToolResult(content=[TextContent(text="three")], structured_content={"count": "three"})
    if (size := arguments.get("bytes")) is not None:
        return _text(("0123456789abcde\n" * (size // 16 + 1))[:size])
    return _text(arguments.get("text", f"{tool} {arguments.get('key')}: done"))


def _text(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=is_error)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A tool server that writes down every call before it acts.")
    parser.add_argument("--file", type=Path, required=True, help="the ledger, one JSON line per event")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument(
        "--check-epoch", action="store_true", help="refuse callers that lost their task to a later epoch"
    )
    parser.add_argument(
        "--sessions", action="store_true", help="be an older server: with MCP sessions, which a restart loses"
    )
    parser.add_argument("--stdio", action="store_true", help="speak on the standard streams instead of HTTP")
    options = parser.parse_args()

    ledger = Ledger(options.file)
    if options.stdio:
        serve_stdio(ledger, check_epoch=options.check_epoch)
    else:
        serve_http(ledger, options.port, check_epoch=options.check_epoch, sessions=options.sessions)


if __name__ == "__main__":
    main()
