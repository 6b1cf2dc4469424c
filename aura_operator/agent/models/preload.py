"""Loads what model calls need before the first task is taken, so that a hand-over waits for none of it.

Owns what is loaded when; knows no task and no agent.
"""

from __future__ import annotations

from importlib import import_module

from aura_operator.core.transcript import UserInput

_USUAL_PROVIDERS = ("pydantic_ai.models.openai", "pydantic_ai.providers.openai")


async def load() -> None:
    """Asks a model that answers by itself: that loads and builds all but the providers' own SDKs. About a second."""
    from aura_operator.agent.models.client import ModelClient
    from aura_operator.agent.models.conversation import Conversation
    from aura_operator.agent.models.settings import ModelSettings

    client = ModelClient(ModelSettings(name="scripted:preload", settings={"script": [{"text": "loaded"}]}))
    await client.respond(Conversation("", lambda payload: ""), (UserInput(text="are you there?"),), [])
    await client.aclose()


def load_usual_providers() -> None:
    """Imports the SDK that most agents use. Blocks for a second: to be called in a thread, once all else is up."""
    for module in _USUAL_PROVIDERS:
        import_module(module)
