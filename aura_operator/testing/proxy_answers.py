"""How the fault proxy answers a client or cuts it off. Owns bytes and connections, not which request meets what."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
from aiohttp import web

from aura_operator.testing.proxy_rules import Action, Answer, CutWatch, ExpireWatch

LARGEST_BODY_BYTES = 64 * 2**20
REASONS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


async def copy_events(
    incoming: web.Request,
    action: Action | None,
    answer: aiohttp.ClientResponse,
    response: web.StreamResponse,
) -> web.StreamResponse:
    """Passes a watch on as it comes, until it ends, its API server goes, or the action is due."""
    events_left = action.after_events if isinstance(action, CutWatch | ExpireWatch) else None
    content = answer.content
    while events_left != 0:
        try:
            # Events are counted as lines of JSON; where none are counted, any encoding passes as it comes.
            part = await (content.readany() if events_left is None else content.readuntil(max_size=LARGEST_BODY_BYTES))
        except aiohttp.ClientError:
            return cut(incoming)
        if not part:
            await response.write_eof()
            return response
        await response.write(part)
        if events_left is not None:
            events_left -= 1
    if isinstance(action, CutWatch):
        return cut(incoming)
    gone = {"type": "ERROR", "object": failure(410, "too old resource version: said by the fault proxy")}
    await response.write(json.dumps(gone).encode() + b"\n")
    await response.write_eof()
    return response


def abort(transport: asyncio.BaseTransport) -> None:
    # `close` would send what is buffered, and say goodbye in TLS.
    if isinstance(transport, asyncio.Transport):
        transport.abort()


def cut(incoming: web.Request) -> web.StreamResponse:
    if incoming.transport is not None:
        abort(incoming.transport)
    return web.Response()  # aiohttp wants one; it goes nowhere.


def given(answer: Answer) -> web.Response:
    headers = {} if answer.retry_after_seconds is None else {"Retry-After": str(answer.retry_after_seconds)}
    return web.json_response(failure(answer.status, answer.message), status=answer.status, headers=headers)


def failure(code: int, message: str) -> dict[str, Any]:
    reason = REASONS.get(code, "")
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
