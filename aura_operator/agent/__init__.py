"""Performs commands: model calls through pydantic-ai, tool calls through MCP. Knows no Kubernetes, no journal.

`Model` and `Tools` are ports: docs/extending.md says how to bring others.
"""

from __future__ import annotations

from aura_operator.agent.models.turn import ModelTurn, RequestedCall
from aura_operator.agent.ports import Model, Tools
from aura_operator.agent.specs import ToolOutcome, ToolSpec

__all__ = ["Model", "ModelTurn", "RequestedCall", "ToolOutcome", "ToolSpec", "Tools"]
