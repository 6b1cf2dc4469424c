"""Judges the end of a tool call: which outcome follows from an answer, an error, or the lack of both.

Owns the judgement. It errs on one side only: what is not certain is unknown.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

import anyio
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    CallToolResult,
    InputRequiredResult,
)
from pydantic import TypeAdapter, ValidationError

from aura_operator.agent.mcp.delivery import Delivery, GivenUpError
from aura_operator.agent.mcp.results import outcome_of
from aura_operator.agent.mcp.transport_http import LARGEST_ANSWER_BYTES
from aura_operator.agent.outcomes import finished
from aura_operator.agent.redaction import Redactor
from aura_operator.agent.specs import ToolOutcome, ToolSpec
from aura_operator.core.entries import Outcome

ANSWER: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)

# A server, or a gateway before it, that says one of these has not passed the call on.
_REFUSED_UNREAD = {
    401: "it refuses this agent's credentials (401): check headersSecretRef",
    403: "it forbids this agent to call it (403): check headersSecretRef",
    404: "nothing is served at that URL (404): check spec.mcpServers[].url",
    405: "it doesn't take calls at that URL (405): check spec.mcpServers[].url",
    413: "the arguments are too large for it (413)",
    415: "it doesn't take JSON at that URL (415): check spec.mcpServers[].url",
    429: "it limits the rate of calls (429): try again later",
}
_NO_SESSION = (404, 400)  # of a request that names a session: the specification's, and what some servers say
# Said by a server, or a gateway before it, that had taken the call on.
_BROKE_OFF = (INTERNAL_ERROR, REQUEST_TIMEOUT)


class Stale(Exception):
    """The link is dead, and certainly the tool did not run: connect anew and call again."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call: an answer, or a status with the words for it."""

    status: Outcome
    text: str
    result: CallToolResult | None = None

    def outcome(self, spec: ToolSpec, redactor: Redactor, limit_bytes: int) -> ToolOutcome:
        """The outcome, in which nothing is secret and nothing is too long."""
        if self.result is not None:
            return outcome_of(self.result, spec, redactor, limit_bytes)
        return finished(self.status, redactor.scrub_error(f"{spec.name}: {self.text}"), redactor, limit_bytes)


async def judged(answer: Awaitable[CallToolResult | InputRequiredResult], delivery: Delivery) -> Reply:
    """Awaits the answer to a delivery. Raises Stale, or what the delivery's last check raised."""
    try:
        result = await answer
    except ValidationError as error:
        return Reply(
            Outcome.ERROR,
            f"the tool ran, but its result is not one that MCP knows ({error.error_count()} faults): "
            "report this to whoever runs the server",
        )
    except MCPError as error:
        if delivery.refused is not None:
            raise delivery.refused from None
        return _failed(error, delivery)
    except (GivenUpError, anyio.BrokenResourceError, anyio.ClosedResourceError, TimeoutError) as error:
        if delivery.refused is not None:
            raise delivery.refused from None
        return _lost(delivery, str(error) or "the connection was lost")
    if isinstance(result, InputRequiredResult):
        return Reply(
            Outcome.ERROR,
            "the tool asks for more input in the middle of the call, which this agent can't give: "
            "call it with all it needs, or use another tool",
        )
    return Reply(Outcome.OK, "", result)


def _failed(error: MCPError, delivery: Delivery) -> Reply:
    code, message, status = error.error.code, error.error.message, delivery.http_status
    if delivery.oversized:
        return Reply(
            Outcome.ERROR,
            f"the tool ran, but its result has over {LARGEST_ANSWER_BYTES} bytes and was thrown away; ask for less",
        )
    # A server without sessions maps a tool's own errors to these statuses too, after the tool has run: their words
    # prove nothing there.
    if delivery.named_session and status in _NO_SESSION and "session" in message.lower():
        raise Stale("it no longer knows this session")
    if code == HEADER_MISMATCH and status == 400:
        raise Stale("its tools have changed")
    if status in _REFUSED_UNREAD:
        return Reply(Outcome.NOT_SENT, f"{_REFUSED_UNREAD[status]}; it says: {message}")
    if status is not None and status >= 500:
        return Reply(Outcome.UNKNOWN, f"the server failed (HTTP {status}): it may or may not have happened")
    if code == CONNECTION_CLOSED and not delivery.answered:
        return _lost(delivery, message)
    if code in _BROKE_OFF and (status is None or status < 400):
        return Reply(Outcome.UNKNOWN, f"the server failed in the call ({message}): it may or may not have happened")
    return Reply(Outcome.ERROR, f"the server refuses the call: {message}")


def _lost(delivery: Delivery, why: str) -> Reply:
    if delivery.sent:
        return Reply(
            Outcome.UNKNOWN, f"the connection was lost during the call ({why}): it may or may not have happened"
        )
    raise Stale(why)
