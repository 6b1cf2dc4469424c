"""A toolbox over the ledger, the server specs to make one, and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aura_operator.agent.mcp.servers import ServerSpec, Transport
from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.agent.models import reply
from aura_operator.agent.models.turn import ModelTurn
from aura_operator.agent.specs import ToolCall, ToolOutcome
from aura_operator.testing.ledger import EPOCH, IDEMPOTENCY_KEY, RUN, Ledger

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A toolbox with one server, `ledger`, and what that server wrote down."""

    toolbox: Toolbox
    ledger: Ledger

    async def call(
        self,
        tool: str,
        *,
        before_send: Callable[[], Awaitable[None]] | None = None,
        timeout_seconds: float = 20.0,
        limit_bytes: int = 100_000,
        **arguments: Any,
    ) -> ToolOutcome:
        call = ToolCall(
            tool=f"ledger__{tool}",
            arguments=json.dumps({"key": "k", **arguments}),
            meta={RUN: "run-1", EPOCH: 3, IDEMPOTENCY_KEY: "run-1/1/abc"},
            timeout_seconds=timeout_seconds,
            limit_bytes=limit_bytes,
        )
        return await self.toolbox.call(call, before_send or at_once)


def said(turn: ModelTurn) -> str:
    """What the model says aloud."""
    return reply.text_of(reply.load(turn.payload).parts)


def tool_call(
    tool: str,
    arguments: str = "{}",
    *,
    meta: Mapping[str, Any] = MappingProxyType({}),
    timeout_seconds: float = 5.0,
    limit_bytes: int = 1000,
) -> ToolCall:
    """A call of which only what a test is about has to be said."""
    return ToolCall(tool=tool, arguments=arguments, meta=meta, timeout_seconds=timeout_seconds, limit_bytes=limit_bytes)


async def at_once() -> None:
    """Nothing stands against sending."""


def stdio_spec(path: Path, **changes: Any) -> ServerSpec:
    """The ledger as a child process."""
    options: dict[str, Any] = {
        "name": "ledger",
        "transport": Transport.STDIO,
        "command": sys.executable,
        "args": ("-m", "aura_operator.testing.ledger_server", "--stdio", "--file", str(path)),
        "env": {"PYTHONPATH": str(ROOT)},
    }
    return ServerSpec(**{**options, **changes})


def http_spec(url: str, **changes: Any) -> ServerSpec:
    """The ledger over HTTP."""
    options: dict[str, Any] = {"name": "ledger", "transport": Transport.STREAMABLE_HTTP, "url": url}
    return ServerSpec(**{**options, **changes})
