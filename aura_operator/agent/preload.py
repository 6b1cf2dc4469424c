"""Loads what model calls need before the first task is taken: half a second that a hand-over would otherwise wait."""

from __future__ import annotations

from importlib import import_module

_NEEDED = (
    "pydantic_ai.direct",
    "pydantic_ai.models",
    "pydantic_ai.tools",
    "aura_operator.agent.conversation",
    "aura_operator.agent.model_errors",
    "aura_operator.agent.providers",
    "aura_operator.agent.reply",
)


def load() -> None:
    """Imports everything but the providers' own SDKs, which depend on the models in use."""
    for module in _NEEDED:
        import_module(module)
