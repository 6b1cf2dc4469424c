"""What an MCP tool returned, as plain text for the model.

Owns the rendering; judges success no further than the result itself does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, assert_never

from mcp_types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from aura_operator.agent.arguments import violation_of
from aura_operator.agent.outcomes import finished
from aura_operator.agent.redaction import Redactor
from aura_operator.agent.specs import ToolOutcome, ToolSpec
from aura_operator.core.entries import Outcome

_BASE64_PER_BYTE = 4 / 3


def outcome_of(result: CallToolResult, spec: ToolSpec, redactor: Redactor, limit_bytes: int) -> ToolOutcome:
    """The outcome of a call that was answered. Never raises: by now the tool has done what it does."""
    text = rendered(result)
    if result.is_error:
        return finished(Outcome.ERROR, text or "the tool failed and said nothing", redactor, limit_bytes)
    broken = _broken_promise(result, spec.output_schema)
    if broken is None:
        return finished(Outcome.OK, text, redactor, limit_bytes)
    note = f"[the tool ran, but its result is not what its server promises: {broken}]"
    return finished(Outcome.ERROR, f"{note}\n{text}", redactor, limit_bytes)


def rendered(result: CallToolResult) -> str:
    """All content in order. Structured content is shown where no text says the same."""
    blocks = [_block(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and not any(isinstance(block, TextContent) for block in result.content):
        blocks.append(json.dumps(structured, ensure_ascii=False))
    return "\n".join(blocks)


def _block(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mime_type=kind, data=data) | AudioContent(mime_type=kind, data=data):
            return f"[{kind}, {_decoded_size(data)} bytes: not shown, this agent reads text only]"
        case ResourceLink(uri=uri, name=name):
            return f"[resource {name}: {uri}]"
        case EmbeddedResource(resource=resource):
            if isinstance(resource, TextResourceContents):
                return f"[resource {resource.uri}]\n{resource.text}"
            kind = resource.mime_type or "binary"
            return f"[resource {resource.uri}, {kind}, {_decoded_size(resource.blob)} bytes: not shown]"
        case _:
            assert_never(block)


def _decoded_size(data: str) -> int:
    return int(len(data.rstrip("=")) / _BASE64_PER_BYTE)


def _broken_promise(result: CallToolResult, schema: Mapping[str, Any] | None) -> str | None:
    if schema is None:
        return None
    if result.structured_content is None:
        return "it has no structured content"
    return violation_of(result.structured_content, schema)
