"""Model providers that other distributions bring: entry points of the group `aura_operator.model_providers`.

Owns finding and calling their factories, and the words for one that is broken. What pydantic-ai itself knows is not
here: see providers.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from pydantic_ai.models import Model

from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.redaction import Redactor
from aura_operator.errors import ConfigurationError

GROUP = "aura_operator.model_providers"

Factory = Callable[[ModelSettings], Model]
"""Makes the model that `settings.name` stands for.

Called in a thread, once for each agent revision that uses it; it may block, for a minute at most, and sends nothing.
What it raises fails the task with the reason BadModelProvider; a ConfigurationError passes through as it is.
"""


def plugged_in(prefix: str, settings: ModelSettings) -> Model | None:
    """The model of the plugin for names that begin with `prefix:`, or None where no distribution has one.

    Raises ConfigurationError, with the plugin's name and the remedy, where there is one and it gives no model.
    """
    found = _found(prefix)
    if len(found) > 1:
        several = " and ".join(_described(entry) for entry in found)
        raise _broken(settings, f"{several} both provide {prefix!r}", "remove one of them from the worker's image")
    entry = next(iter(found), None)
    if entry is None:
        return None
    remedy = f"correct or remove {_described(entry)} in the worker's image"
    try:
        factory: Factory = entry.load()
        model = factory(settings)
    except ConfigurationError:
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code, in a thread: whatever it raises ends no worker
        raise _broken(settings, f"{_described(entry)} failed with {error!r}", remedy) from None
    if not isinstance(model, Model):
        raise _broken(settings, f"{_described(entry)} made a {type(model).__name__}, not a pydantic-ai Model", remedy)
    return model


@cache
def _found(prefix: str) -> tuple[EntryPoint, ...]:
    """What is installed doesn't change while a process runs, and looking through all of it takes milliseconds."""
    return tuple(entry_points(group=GROUP, name=prefix))


def _described(entry: EntryPoint) -> str:
    distribution = entry.dist
    source = f"{distribution.name} {distribution.version}" if distribution is not None else "an unnamed distribution"
    return f"the model provider {entry.name!r} of {source} ({entry.value})"


def _broken(settings: ModelSettings, what: str, remedy: str) -> ConfigurationError:
    secrets = Redactor([settings.api_key] if settings.api_key else [])
    return ConfigurationError(
        secrets.scrub_error(f"model {settings.name!r} can't be used: {what}; {remedy}"), reason="BadModelProvider"
    )
