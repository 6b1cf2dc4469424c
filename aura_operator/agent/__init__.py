"""Performs commands: model calls through pydantic-ai, tool calls through MCP. Knows no Kubernetes, no journal.

`Model` and `Tools` are ports: docs/extending.md says how to bring others.
"""

from __future__ import annotations

from aura_operator.agent.models.turn import ModelTurn, RequestedCall
from aura_operator.agent.ports import BeforeSend, Model, Tools
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec

__all__ = ["BeforeSend", "Model", "ModelTurn", "RequestedCall", "ToolCall", "ToolOutcome", "ToolSpec", "Tools"]
