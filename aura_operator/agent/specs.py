"""What a tool is and what became of a call: the values that the tools port, its callers and the models share.

Owns shapes only; nothing here connects to anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aura_operator.core.effects import ToolHints
from aura_operator.core.entries import Outcome


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
class ToolCall:
    """A call to be made, once.

    `tool` is the name of a ToolSpec. `arguments` is JSON text, to the byte as a person may have approved it; nobody has
    checked it yet. `meta` goes with the call beside the arguments: run, epoch and idempotency key (docs/tools.md).
    `timeout_seconds` bounds all of it, from the first look at the arguments to the outcome. `limit_bytes` is how long
    the outcome's text may be, in UTF-8.
    """

    tool: str
    arguments: str
    meta: Mapping[str, Any]
    timeout_seconds: float
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """A finished call: what is known of it, as `Tools.call` says.

    `text` is for the model, redacted and within the call's limit; `size_bytes` is its size in UTF-8 before the cut.
    """

    status: Outcome
    text: str
    size_bytes: int
