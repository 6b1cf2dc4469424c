"""Which of a server's tools a model is offered, and under which names.

Owns the naming rule: `<server>__<tool>`, at most 64 characters of those that every provider accepts, each name once.
A tool that can't have such a name is left out and the reason kept: a shortened name could change its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mcp_types import Tool

from aura_operator.agent.mcp.servers import ServerSpec
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.digests import schema_digest
from aura_operator.core.effects import ToolHints
from aura_operator.core.text import clean

LONGEST_NAME = 64
_ACCEPTED = re.compile(r"[A-Za-z0-9_-]+")


def catalogued(
    server: ServerSpec, tools: Sequence[Tool], taken: set[str]
) -> tuple[dict[str, ToolSpec], dict[str, str], dict[str, str]]:
    """The tools by name, the server's own names for them, and the refused names with reasons.

    `taken` are the names of other servers' tools: `a__b` and `c` collide with `a` and `b__c`.
    """
    offered: dict[str, ToolSpec] = {}
    remote_names: dict[str, str] = {}
    refused: dict[str, str] = {}
    for tool in tools:
        name = f"{server.name}__{tool.name}"
        problem = _problem(name, taken | offered.keys())
        if problem is not None:
            refused[name] = problem
            continue
        offered[name] = _spec(name, server, tool)
        remote_names[name] = tool.name
    return offered, remote_names, refused


def _problem(name: str, taken: set[str]) -> str | None:
    if len(name) > LONGEST_NAME:
        return (
            f"the name has {len(name)} characters and providers accept {LONGEST_NAME}: give the server a shorter name"
        )
    if not _ACCEPTED.fullmatch(name):
        return "providers accept letters, digits, _ and - in a name: rename the tool or the server"
    if name in taken:
        return "another tool has this name: rename one of the servers"
    return None


def _spec(name: str, server: ServerSpec, tool: Tool) -> ToolSpec:
    annotations = tool.annotations
    hints = ToolHints()
    if annotations is not None:
        hints = ToolHints(read_only=annotations.read_only_hint, idempotent=annotations.idempotent_hint)
    return ToolSpec(
        name=name,
        server=server.name,
        description=clean(tool.description or tool.title or ""),
        input_schema=tool.input_schema,
        schema_digest=schema_digest(name, tool.input_schema),
        hints=hints if server.trust_hints else None,
        output_schema=tool.output_schema,
    )
