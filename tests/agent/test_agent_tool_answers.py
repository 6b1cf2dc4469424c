"""Answers that no well-kept server gives: what they prove of the call, and what they don't."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from mcp import MCPError
from mcp.server import Server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    REQUEST_TIMEOUT,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    TextContent,
    Tool,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp
from structlog.testing import capture_logs

from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.agent.specs import ToolOutcome
from aura_operator.core.entries import Outcome
from aura_operator.errors import ToolServerError
from hack.rig.waiting import until
from tests.agent.desk import at_once, http_spec, tool_call

Answer = Callable[[dict[str, Any]], Response]


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """An ASGI app on a free port, in this process."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await running
        listener.close()


def by_hand(answer: Answer, pages: tuple[list[str], ...] = (["act"],)) -> ASGIApp:
    """A server of the older kind, written by hand, that gives `answer` to every call."""

    async def endpoint(request: Request) -> Response:
        message = await request.json()
        match message.get("method"):
            case "initialize":
                info = {"name": "by-hand", "version": "1"}
                version = "2025-06-18"
                return _result(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
            case "tools/list":
                number = int((message.get("params") or {}).get("cursor", "0"))
                tools = [{"name": name, "inputSchema": {"type": "object"}} for name in pages[number]]
                more = {"nextCursor": str(number + 1)} if number + 1 < len(pages) else {}
                return _result(message, {"tools": tools, **more})
            case "tools/call":
                return answer(message)
            case method if "id" in message:
                error = {"code": -32601, "message": f"no {method} here"}
                return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
            case _:
                return Response(status_code=202)

    return Starlette(routes=[Route("/mcp", endpoint, methods=["POST"])])


def _result(message: dict[str, Any], result: dict[str, Any]) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})


async def outcome_with(answer: Answer) -> ToolOutcome:
    async with serving(by_hand(answer)) as url:
        return await _one_call(url)


async def _one_call(url: str, before_send: Callable[[], Awaitable[None]] = at_once) -> ToolOutcome:
    toolbox = Toolbox((http_spec(url, timeout_seconds=5.0),))
    try:
        await toolbox.start()
        return await toolbox.call(tool_call("ledger__act", timeout_seconds=10, limit_bytes=10_000), before_send)
    finally:
        await toolbox.aclose()


@pytest.mark.parametrize(
    ("status", "known", "words"),
    [
        (401, Outcome.NOT_SENT, "headersSecretRef"),
        (403, Outcome.NOT_SENT, "headersSecretRef"),
        (404, Outcome.NOT_SENT, "spec.mcpServers[].url"),
        (429, Outcome.NOT_SENT, "limits the rate"),
        (400, Outcome.ERROR, "refuses the call"),
        (500, Outcome.UNKNOWN, "may or may not have happened"),
        (502, Outcome.UNKNOWN, "may or may not have happened"),
        (503, Outcome.UNKNOWN, "may or may not have happened"),
    ],
)
async def test_a_status_counts_as_not_sent_only_where_nobody_can_have_read_the_call(
    status: int, known: Outcome, words: str
) -> None:
    outcome = await outcome_with(lambda _: Response("no", status_code=status))

    assert outcome.status is known
    assert words in outcome.text


async def test_a_protocol_error_is_the_servers_answer() -> None:
    def answer(message: dict[str, Any]) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32000, "message": "quota"}})

    outcome = await outcome_with(answer)

    assert outcome.status is Outcome.ERROR
    assert "quota" in outcome.text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param(INTERNAL_ERROR, "Internal server error", id="the tool raised"),
        pytest.param(REQUEST_TIMEOUT, "request timed out", id="a gateway lost patience"),
    ],
)
async def test_a_protocol_error_from_within_the_call_leaves_it_unknown(code: int, message: str) -> None:
    def answer(request: dict[str, Any]) -> Response:
        return JSONResponse({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})

    outcome = await outcome_with(answer)

    assert outcome.status is Outcome.UNKNOWN
    assert message in outcome.text and "may or may not have happened" in outcome.text


async def test_an_error_that_speaks_of_a_session_is_no_lost_session_where_there_are_none() -> None:
    ran: list[str] = []

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        ran.append(params.name)
        raise MCPError(code=INVALID_PARAMS, message="the ssh session was closed after the command had run")

    async def list_tools(*_: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="act", input_schema={"type": "object"})])

    server: Server[Any] = Server("shell", on_list_tools=list_tools, on_call_tool=call_tool)
    async with serving(server.streamable_http_app(stateless_http=True)) as url:
        outcome = await _one_call(url)

    assert ran == ["act"]
    assert outcome.status is Outcome.ERROR
    assert "the ssh session was closed" in outcome.text


async def test_a_result_that_is_none_is_an_error_and_no_exception() -> None:
    outcome = await outcome_with(lambda message: _result(message, {"content": [{"type": "telepathy"}]}))

    assert outcome.status is Outcome.ERROR
    assert "the tool ran" in outcome.text


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_cut_in_the_middle_leaves_the_call_unknown(kind: str) -> None:
    async def half() -> AsyncIterator[bytes]:
        yield b'data: {"jsonrpc": "2.0", ' if "event" in kind else b'{"jsonrpc": "2.0", '
        raise ConnectionResetError("the server's machine is gone")

    outcome = await outcome_with(lambda _: StreamingResponse(half(), media_type=kind))

    assert outcome.status is Outcome.UNKNOWN


@pytest.mark.behaviour(29)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_without_end_is_thrown_away_and_said_to_have_happened(kind: str) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"data: " if "event" in kind else b'"'
        while True:
            yield b"x" * 1_000_000
            await asyncio.sleep(0)  # this server shares the loop with its client

    outcome = await outcome_with(lambda _: StreamingResponse(endless(), media_type=kind))

    assert outcome.status is Outcome.ERROR
    assert "the tool ran" in outcome.text and "ask for less" in outcome.text


async def test_an_accepted_call_without_an_answer_is_not_taken_for_success() -> None:
    outcome = await outcome_with(lambda _: Response(status_code=202))

    assert outcome.status is not Outcome.OK


async def test_a_tool_that_asks_for_input_ends_in_an_error_that_says_so() -> None:
    async def call_tool(*_: object) -> InputRequiredResult:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        asked = ElicitRequest(params=ElicitRequestFormParams(message="Which pod?", requested_schema=schema))
        return InputRequiredResult(input_requests={"pod": asked})

    async def list_tools(*_: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="act", input_schema={"type": "object"})])

    server: Server[Any] = Server("asking", on_list_tools=list_tools, on_call_tool=call_tool)
    async with serving(server.streamable_http_app(stateless_http=True)) as url:
        outcome = await _one_call(url)

    assert outcome.status is Outcome.ERROR
    assert "asks for more input" in outcome.text


async def test_a_tool_list_in_pages_is_read_to_its_end() -> None:
    pages = (["a", "b"], ["c"], ["d" * 70])
    async with serving(by_hand(lambda message: _result(message, {"content": []}), pages)) as url:
        toolbox = Toolbox((http_spec(url),))
        with capture_logs() as logs:
            await toolbox.start()
        tools = dict(toolbox.tools)
        await toolbox.aclose()

    assert list(tools) == ["ledger__a", "ledger__b", "ledger__c"]
    (refused,) = [line for line in logs if line["event"] == "tool refused"]
    assert refused["tool"] == "ledger__" + "d" * 70 and "78 characters" in refused["why"]


@pytest.mark.behaviour(29)
async def test_a_tool_list_without_end_is_refused() -> None:
    pages = tuple([f"t{number}"] for number in range(200))
    async with serving(by_hand(lambda message: _result(message, {"content": []}), pages)) as url:
        toolbox = Toolbox((http_spec(url),))
        with pytest.raises(ToolServerError, match="lists tools without end"):
            await toolbox.start()
        await toolbox.aclose()


async def test_tools_that_changed_are_seen_when_the_server_says_so_or_comes_back() -> None:
    names = ["before"]

    async def call_tool(*_: object) -> CallToolResult:
        return CallToolResult(content=[TextContent(text="done")])

    async def list_tools(*_: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in names])

    server: Server[Any] = Server("changing", on_list_tools=list_tools, on_call_tool=call_tool)
    async with serving(server.streamable_http_app(stateless_http=True)) as url:
        toolbox = Toolbox((http_spec(url),))
        await toolbox.start()
        assert list(toolbox.tools) == ["ledger__before"]
        names[:] = ["after"]
        link = await toolbox._connections["ledger"].link()
        link.lose()
        await toolbox.call(tool_call("ledger__before"), at_once)
        await until(lambda: list(toolbox.tools) == ["ledger__after"], "the tool of after")
        await toolbox.aclose()


async def test_the_meta_arrives_beside_what_the_protocol_puts_there() -> None:
    seen: list[dict[str, Any]] = []

    def answer(message: dict[str, Any]) -> Response:
        seen.append(message["params"])
        return _result(message, {"content": [{"type": "text", "text": json.dumps(message["params"])}]})

    async with serving(by_hand(answer)) as url:
        toolbox = Toolbox((http_spec(url),))
        await toolbox.start()
        meta = {"aura.mezmo.com/run": "r", "aura.mezmo.com/epoch": 7, "aura.mezmo.com/idempotencyKey": "r/1/x"}
        await toolbox.call(tool_call("ledger__act", "", meta=meta), at_once)
        await toolbox.aclose()

    (params,) = seen
    assert {key: params["_meta"][key] for key in meta} == meta
    assert (params["name"], params["arguments"]) == ("act", {})
