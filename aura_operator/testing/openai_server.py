"""A server that speaks OpenAI's Chat Completions over real HTTP, and fails in all the ways that providers do.

Owns the wire: streams, broken streams, error answers, silence. It thinks nothing; replies are given in advance.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

_HEADERS_END = b"\r\n\r\n"
_PIECE = 8  # characters a chunk: enough chunks in a short text for a stream to break between them


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCall:
    """A tool call of a reply. `arguments` are sent as they are, JSON or not; without `call_id` none is sent."""

    tool: str
    arguments: str = "{}"
    call_id: str | None = "call_1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeReply:
    """What one request gets.

    `cut_after_chunks` ends the stream there: `cut_politely` as if all had been said, else by resetting the
    connection. A `status` other than 200 is an error answer with `message` and `code`. `hang`: headers never come.
    """

    text: str = ""
    calls: tuple[FakeCall, ...] = ()
    finish_reason: str = "stop"
    chunk_delay_seconds: float = 0.0
    cut_after_chunks: int | None = None
    cut_politely: bool = False
    hang: bool = False
    status: int = 200
    retry_after: float | None = None
    message: str = "the server says so"
    code: str | None = None


@dataclass(slots=True)
class OpenAIServer:
    """The running server. The nth request gets the nth reply; the last reply is given again for ever."""

    replies: Sequence[FakeReply]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    streaming: asyncio.Event = field(default_factory=asyncio.Event)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while (head := await _head(reader)) is not None:
                headers = _headers(head)
                body = json.loads(await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}")
                reply = self.replies[min(len(self.requests), len(self.replies) - 1)]
                self.requests.append(body)
                self.keys.append(headers.get("authorization", "").removeprefix("Bearer "))
                self.arrived.set()
                if not await self._answer(reply, reader, writer):
                    break
        writer.close()

    async def _answer(self, reply: FakeReply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection may be used again."""
        if reply.hang:
            await self._until_hung_up(reader)
            return False
        if reply.status != 200:
            writer.write(_error(reply))
            await writer.drain()
            return True
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for number, chunk in enumerate(_chunks(reply)):
            if number == reply.cut_after_chunks:
                return await _cut(reply, writer)
            writer.write(_framed(f"data: {json.dumps(chunk)}\n\n".encode()))
            await writer.drain()
            self.streaming.set()
            if reply.chunk_delay_seconds and await self._hung_up_within(reader, reply.chunk_delay_seconds):
                return False
        writer.write(_framed(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _hung_up_within(self, reader: asyncio.StreamReader, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._until_hung_up(reader)
                return True
        return False

    async def _until_hung_up(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            await reader.read(1)
        self.hung_up.set()


@asynccontextmanager
async def openai_server(*replies: FakeReply) -> AsyncIterator[OpenAIServer]:
    """A server on a free port of 127.0.0.1 for as long as the block lasts."""
    server = OpenAIServer(replies)
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(server.serve(reader, writer))
        connections.add(connection)
        connection.add_done_callback(connections.discard)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listener.close()
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readuntil(_HEADERS_END)
    except asyncio.IncompleteReadError:
        return None


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


def _chunks(reply: FakeReply) -> Iterator[dict[str, Any]]:
    """The events of a whole stream, as OpenAI sends them: text in pieces, calls in pieces, the reason, the usage."""
    yield _chunk({"role": "assistant", "content": ""})
    for start in range(0, len(reply.text), _PIECE):
        yield _chunk({"content": reply.text[start : start + _PIECE]})
    for index, call in enumerate(reply.calls):
        named: dict[str, Any] = {"index": index, "type": "function", "function": {"name": call.tool, "arguments": ""}}
        if call.call_id is not None:
            named["id"] = call.call_id
        yield _chunk({"tool_calls": [named]})
        for start in range(0, len(call.arguments), _PIECE):
            piece = {"arguments": call.arguments[start : start + _PIECE]}
            yield _chunk({"tool_calls": [{"index": index, "function": piece}]})
    yield _chunk({}, finish_reason="tool_calls" if reply.calls else reply.finish_reason)
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    yield {**_chunk({}), "choices": [], "usage": usage}


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def _framed(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _error(reply: FakeReply) -> bytes:
    error = {"error": {"message": reply.message, "type": "error", "param": None, "code": reply.code}}
    body = json.dumps(error).encode()
    head = f"HTTP/1.1 {reply.status} Error\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    if reply.retry_after is not None:
        head += f"retry-after: {reply.retry_after:g}\r\n"
    return head.encode() + b"\r\n" + body


async def _cut(reply: FakeReply, writer: asyncio.StreamWriter) -> bool:
    if reply.cut_politely:
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True
    writer.transport.abort()
    return False
