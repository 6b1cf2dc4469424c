"""What one MCP server of an agent is: how it is reached, with which secrets. Owns the shape; connects to nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum


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
