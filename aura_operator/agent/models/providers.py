"""Builds the model that a name stands for, loading its provider's SDK only then.

Owns the mapping from an agent's `spec.model` to a pydantic-ai model; sends nothing.
"""

from __future__ import annotations

import inspect
from contextlib import AsyncExitStack
from typing import Any

import pydantic_ai.direct  # noqa: F401 - loaded here with the rest, off the loop, and not within the first request
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class

from aura_operator.agent.models.http import http_client
from aura_operator.agent.models.plugins import GROUP, plugged_in
from aura_operator.agent.models.prices import forget_prices
from aura_operator.agent.models.settings import ModelSettings
from aura_operator.errors import ConfigurationError

# Without a key of its own a provider would look for one in the environment, and send the worker's to whatever URL
# an agent's author wrote down.
_NO_KEY = "no-key-configured"

# The others' SDKs may want a client of another library.
_TAKE_OUR_CLIENT = ("openai", "openai-chat", "openai-responses", "anthropic")


def build(settings: ModelSettings, resources: AsyncExitStack) -> Model:
    """The model of an agent: a plugin's if one has the name's prefix, else pydantic-ai's.

    `resources` gets what must be closed after the model. Raises ConfigurationError with the reason BadModelName,
    BadModelSettings or BadModelProvider.
    """
    forget_prices()
    provider, _, model = settings.name.partition(":")
    if not model:
        raise _bad_name(settings, "a name has the form provider:model, for example openai-chat:gpt-5 or anthropic:…")
    plugin = plugged_in(provider, settings)
    if plugin is not None:
        return plugin
    try:
        return infer_model(settings.name, provider_factory=lambda name: _provider(name, settings, resources))
    except (UserError, ImportError) as error:
        raise _bad_name(settings, str(error)) from error


def _provider(name: str, settings: ModelSettings, resources: AsyncExitStack) -> Provider[Any]:
    try:
        provider_class = infer_provider_class(name)
    except ValueError as error:
        raise _bad_name(
            settings,
            f"no provider is called {name!r}, neither in pydantic-ai (OpenAI-compatible servers are openai-chat) nor "
            f"among the installed plugins (entry points of {GROUP})",
        ) from error
    except ImportError as error:
        raise _bad_name(settings, f"the provider {name!r} is not part of this installation ({error})") from error
    accepted = inspect.signature(provider_class.__init__).parameters
    options: dict[str, Any] = {}
    if "api_key" in accepted:
        options["api_key"] = settings.api_key or _NO_KEY
    if settings.base_url is not None:
        if "base_url" not in accepted:
            raise ConfigurationError(
                f"model {settings.name!r}: the provider {name!r} takes no base URL; remove spec.model.baseURL",
                reason="BadModelSettings",
            )
        options["base_url"] = settings.base_url
    if name in _TAKE_OUR_CLIENT:
        client = options["http_client"] = http_client()
        resources.push_async_callback(client.aclose)
    return provider_class(**options)


def _bad_name(settings: ModelSettings, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"model {settings.name!r} can't be used: {why}; correct spec.model.name of the agent",
        reason="BadModelName",
    )
