"""Performs commands: model calls through pydantic-ai, tool calls through MCP. Knows no Kubernetes, no journal.

`Model` and `Tools` are ports: docs/extending.md says how to bring others, and what is here is what they need.
"""

from __future__ import annotations

from aura_operator.agent.models.turn import ModelTurn, RequestedCall
from aura_operator.agent.outcomes import finished
from aura_operator.agent.ports import BeforeSend, Model, Tools
from aura_operator.agent.redaction import Redactor
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec
from aura_operator.core.digests import schema_digest
from aura_operator.core.entries import Outcome

__all__ = [
    "BeforeSend",
    "Model",
    "ModelTurn",
    "Outcome",
    "Redactor",
    "RequestedCall",
    "ToolCall",
    "ToolOutcome",
    "ToolSpec",
    "Tools",
    "finished",
    "schema_digest",
]
