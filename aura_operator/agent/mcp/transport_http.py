"""The HTTP transport below MCP's: keeps one request's trouble from taking down the connection that others share.

Owns what happens between MCP's client and the socket: deadlines, the largest answer, the last check before a tool
call, and errors, which become answers, because MCP's client ends the whole session on an exception from here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2

from aura_operator.agent.mcp.delivery import CURRENT, Delivery
from aura_operator.agent.trust import trust

LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
_UNASKED_SECONDS = 3.0  # for a notification or a goodbye, whose answer nobody needs
_CONNECTION_CLOSED = -32000

# uvicorn closes idle connections after 5 s. A request that meets the close is lost without a trace of whether it was
# read, and a person would be asked: so a connection is given up well before.
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=2.0)


class HttpWire(httpx2.AsyncBaseTransport):
    """`timeout_seconds` bounds connecting, and any request that is not a tool call."""

    def __init__(self, timeout_seconds: float) -> None:
        self._inner = httpx2.AsyncHTTPTransport(limits=_LIMITS, verify=trust())
        self._seconds = timeout_seconds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        delivery = CURRENT.get()
        if request.method == "GET":
            return await self._listen(request, delivery)
        message = json.loads(request.content) if request.method == "POST" else {}
        if delivery is not None and message.get("method") == "tools/call":
            return await self._call(request, delivery)
        return await self._ask(request, message)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _call(self, request: httpx2.Request, delivery: Delivery) -> httpx2.Response:
        async def last_check(event: str, _: Mapping[str, Any]) -> None:
            # Here the connection stands and not a byte of this request is out: as late as a check can be.
            if event.endswith(".send_request_headers.started"):
                await delivery.authorize()

        request.extensions = {**request.extensions, "timeout": _timeouts(self._seconds, None), "trace": last_check}
        try:
            delivery.named_session = "mcp-session-id" in request.headers
            async with delivery.wanted():
                response = await self._inner.handle_async_request(request)
            delivery.http_status = response.status_code
            return await _received(response, delivery)
        except Exception as error:  # noqa: BLE001 - becomes an answer to this call; what it was is in `delivery`
            return _failure(error)

    async def _ask(self, request: httpx2.Request, message: Mapping[str, Any]) -> httpx2.Response:
        expects_answer = "id" in message and "method" in message
        seconds = self._seconds if expects_answer else min(self._seconds, _UNASKED_SECONDS)
        request.extensions = {**request.extensions, "timeout": _timeouts(self._seconds, seconds)}
        try:
            response = await self._inner.handle_async_request(request)
            return await _received(response, None)
        except Exception as error:
            if expects_answer and not isinstance(error, httpx2.TransportError):
                raise
            # MCP's writer sends one message after the other, and stops for good when one raises.
            return _failure(error) if expects_answer else httpx2.Response(202)

    async def _listen(self, request: httpx2.Request, delivery: Delivery | None) -> httpx2.Response:
        """A GET holds a stream open for what the server has to say, for as long as it likes."""
        if delivery is not None and delivery.oversized:
            return _failure(httpx2.ReadError("the answer was too large once already"))
        request.extensions = {**request.extensions, "timeout": _timeouts(self._seconds, None)}
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            return _failure(error)
        response.stream = _Bounded(response.stream, delivery)
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A response body that ends when it grows too large, or when its caller has lost interest."""

    def __init__(self, stream: Any, delivery: Delivery | None) -> None:
        self._stream: httpx2.AsyncByteStream = stream
        self._delivery = delivery

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size_bytes = 0
        chunks = aiter(self._stream)
        while (chunk := await self._next(chunks)) is not None:
            size_bytes += len(chunk)
            # A stream that is nobody's call carries many messages, each bounded by MCP's own reader.
            if size_bytes > LARGEST_ANSWER_BYTES and self._delivery is not None:
                self._delivery.oversized = True
                raise httpx2.ReadError(f"the answer is larger than {LARGEST_ANSWER_BYTES} bytes")
            yield chunk

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        if self._delivery is None:
            return await anext(chunks, None)
        try:
            async with self._delivery.wanted():
                return await anext(chunks, None)
        except TimeoutError as error:
            raise httpx2.ReadError("the caller no longer waits") from error

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _received(response: httpx2.Response, delivery: Delivery | None) -> httpx2.Response:
    """The response, with its body already read if it is one JSON document: reading it later could raise."""
    response.stream = _Bounded(response.stream, delivery)
    if not response.headers.get("content-type", "").lower().startswith("application/json"):
        return response
    try:
        body = await response.aread()
    finally:
        await response.aclose()
    if delivery is not None:
        delivery.answered = True
    headers = {name: value for name, value in response.headers.items() if name not in ("content-encoding",)}
    return httpx2.Response(response.status_code, headers=headers, content=body)


def _failure(error: Exception) -> httpx2.Response:
    """An answer that MCP's client turns into a JSON-RPC error of the request that it belongs to."""
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return httpx2.Response(
        503, json={"jsonrpc": "2.0", "id": None, "error": {"code": _CONNECTION_CLOSED, "message": said}}
    )


def _timeouts(connect_seconds: float, read_seconds: float | None) -> dict[str, float | None]:
    return {"connect": connect_seconds, "read": read_seconds, "write": read_seconds, "pool": connect_seconds}
