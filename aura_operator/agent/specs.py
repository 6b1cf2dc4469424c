"""What a tool server and its tools are, and what became of a call: the values that `tools` and its callers share.

Owns shapes only; nothing here connects to anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aura_operator.core.effects import ToolHints
from aura_operator.core.entries import Outcome as Outcome

__all__ = ["Outcome", "ServerSpec", "ToolOutcome", "ToolSpec", "Transport"]


class Transport(Enum):
    """How a server is spoken to. The values are those of the agent's `spec.mcpServers[].transport`."""

    STREAMABLE_HTTP = "StreamableHTTP"
    STDIO = "Stdio"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One MCP server of an agent, with its secrets already read. `timeout_seconds` bounds connecting and listing.

    `headers` come from a Secret: their values never appear in an outcome or an error.
    """

    name: str
    transport: Transport
    url: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float = 30.0
    trust_hints: bool = False

    @property
    def secrets(self) -> Iterator[str]:
        """The values that must not be seen, also without the scheme that an Authorization header begins with."""
        for value in self.headers.values():
            yield value
            yield value.rpartition(" ")[2]

    @property
    def address(self) -> str:
        """The server as a person would recognise it: its URL, or its command."""
        return self.url or self.command or "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model sees it. `name` is `<server>__<tool>`, at most 64 characters.

    `schema_digest` is `sha256:<hex>` over the canonical JSON of name and input schema. `hints` is None unless the
    agent trusts those of the server. `output_schema` is what the server promises of a result, if it does.
    """

    name: str
    server: str
    description: str
    input_schema: Mapping[str, Any]
    schema_digest: str
    hints: ToolHints | None = None
    output_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """A finished call. `text` is for the model, redacted and within the limit; `size_bytes` is UTF-8 before the cut."""

    status: Outcome
    text: str
    size_bytes: int
