"""A tool server that takes any arguments, remembers the very bytes it was sent, and can change its tool's schema.

`python -m tests.e2e.toolserver --file FILE [--port 0] [--limit N]`: each request's body is a line of FILE. `--limit` is
a part of the schema of `act`; another one makes it another tool. `pod` returns the text of FILE.pod, numbered.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROOT = Path(__file__).parents[2]


class ToolServer:
    """The server in a process of its own; `start` after `stop` serves at the same address."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.url = ""
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, limit: int = 1) -> None:
        command = [sys.executable, "-m", "tests.e2e.toolserver", "--file", str(self.file), "--port", str(self._port)]
        self._process = subprocess.Popen([*command, "--limit", str(limit)], stdout=subprocess.PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self.url = json.loads(self._process.stdout.readline())["url"]
        self._port = int(self.url.rpartition(":")[2].partition("/")[0])

    def stop(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    @property
    def bodies(self) -> list[bytes]:
        """The calls that came, to the byte."""
        return self.file.read_bytes().splitlines() if self.file.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--limit", type=int, default=1)
    options = parser.parse_args()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    listener.listen()
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    app = _remembering(_server(options.file, options.limit).streamable_http_app(stateless_http=True), options.file)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def _server(file: Path, limit: int) -> Server[Any]:
    tools = [
        Tool(name="act", description="Acts.", input_schema={"type": "object", "x-limit": limit}),
        Tool(name="pod", description="Describes a pod.", input_schema={"type": "object"}),
    ]

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        text = f"acted under limit {limit}"
        if params.name == "pod":
            number = str((params.arguments or {}).get("number", 0)).rjust(4, "0")
            text = file.with_suffix(".pod").read_text().replace("NUMB", number)
        return CallToolResult(content=[TextContent(text=text)])

    return Server("toolserver", on_list_tools=list_tools, on_call_tool=call_tool)


def _remembering(app: ASGIApp, file: Path) -> ASGIApp:
    async def remember(scope: Scope, receive: Receive, send: Send) -> None:
        body = b""

        async def listening() -> Message:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body") and b'"tools/call"' in body:
                    with file.open("ab") as kept:
                        kept.write(body + b"\n")
            return message

        await app(scope, listening if scope["type"] == "http" else receive, send)

    return remember


if __name__ == "__main__":
    main()
