"""Loads what model calls need before the first task is taken, so that a hand-over waits for none of it.

Owns what is loaded when; knows no task and no agent.
"""

from __future__ import annotations

import gc
from importlib import import_module

from aura_operator.agent.trust import trust
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
    """Imports the SDK that most agents use, and reads the trusted authorities. It is the last that is loaded.

    Blocks for a second: to be called in a thread, once all else is up.
    """
    for module in _USUAL_PROVIDERS:
        import_module(module)
    trust()
    gc.freeze()  # what is loaded stays: each full collection would stop the loop for 70 ms to look through it
