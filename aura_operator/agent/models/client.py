"""One request to a language model: a conversation goes in, what the model said and wants comes out.

Owns the request, its deadline and its cancellation. Whether and when to try again is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.models.turn import ModelTurn
from aura_operator.agent.redaction import Redactor
from aura_operator.core.entries import Usage
from aura_operator.core.transcript import Item
from aura_operator.errors import ConfigurationError, ModelError
from aura_operator.foreign import contained, in_own_thread
from aura_operator.single_flight import SingleFlight

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

    from aura_operator.agent.models.conversation import Conversation
    from aura_operator.agent.specs import ToolSpec

BUILD_SECONDS = 60.0  # for loading a provider's SDK, and for what a plugin does besides

# A call of the SDK's own would be invisible to the budget and to cancellation by epoch: retries are the caller's.
_NO_SDK_RETRIES = {"max_retries": 0}


class ModelClient:
    """Speaks to one model; its connections live until `aclose`. Requests may run side by side."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._redactor = Redactor([settings.api_key] if settings.api_key else [])
        self._resources = AsyncExitStack()
        self._model: Model | None = None
        self._opening: SingleFlight[str, Model] = SingleFlight()

    async def respond(
        self, conversation: Conversation, transcript: Sequence[Item], tools: Sequence[ToolSpec]
    ) -> ModelTurn:
        """Asks once.

        Raises ModelError, or ConfigurationError where there can be no such model. Cancelling the task closes the HTTP
        request at once.
        """
        model = await self._open()
        from aura_operator.agent.models import reply

        response = await self._request(model, conversation.messages(transcript), tools)
        return ModelTurn(
            payload=reply.dump(response),
            calls=reply.calls_of(response.parts),
            usage=Usage(
                requests=1, input_tokens=response.usage.input_tokens, output_tokens=response.usage.output_tokens
            ),
        )

    async def aclose(self) -> None:
        """Closes the connections. A request that still runs fails."""
        await self._opening.cancel()
        with contained(f"closing the model {self._settings.name!r}"):
            await self._resources.aclose()

    async def _open(self) -> Model:
        if self._model is None:
            return await self._opening.do(self._settings.name, self._opened)
        return self._model

    async def _opened(self) -> Model:
        """Kept here, and not by who asked: all of them may have been cancelled meanwhile."""
        limit = asyncio.timeout(BUILD_SECONDS)
        try:
            with contained("opening it"):
                async with limit:
                    # A provider's SDK takes a second or two to load: in a thread, or the worker's Lease waits for it.
                    build = partial(_built, self._settings, self._resources)
                    model = await in_own_thread(build, f"model {self._settings.name}")
                    self._model = await self._resources.enter_async_context(model)
                    return self._model
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001 - foreign code
            late = limit.expired()  # else a TimeoutError is the provider's own
            raise self._unusable(f"it was not there within {BUILD_SECONDS:g} s" if late else repr(error)) from None

    def _unusable(self, why: str) -> ConfigurationError:
        message = f"model {self._settings.name!r} can't be opened: {why}; correct its provider in the worker's image"
        return ConfigurationError(self._redactor.scrub_error(message), reason="BadModelProvider")

    async def _request(self, model: Model, messages: list[ModelMessage], tools: Sequence[ToolSpec]) -> ModelResponse:
        from pydantic_ai.direct import model_request_stream

        from aura_operator.agent.models.errors import incomplete, translated

        settings: Any = {**self._settings.settings, **_NO_SDK_RETRIES, "timeout": self._settings.timeout_seconds}
        try:
            with contained("the request"):
                async with (
                    asyncio.timeout(self._settings.timeout_seconds),
                    model_request_stream(
                        model,
                        messages,
                        model_settings=settings,
                        model_request_parameters=_parameters(tools),
                    ) as stream,
                ):
                    async for _ in stream:
                        pass  # a stream rather than one answer: a proxy on the way may cut what is silent for a minute
                    response = stream.get()
        except (ModelError, ConfigurationError):
            raise
        except Exception as error:  # noqa: BLE001 - an SDK's
            raise translated(error, self._settings, self._redactor) from None
        if (problem := incomplete(response, model, self._settings)) is not None:
            raise problem
        return response


def _built(settings: ModelSettings, resources: AsyncExitStack) -> Model:
    from aura_operator.agent.models.providers import build

    return build(settings, resources)


def _parameters(tools: Sequence[ToolSpec]) -> Any:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            # strict=False: a schema of a foreign server goes out as it is, not rewritten to what strict mode takes.
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=dict(tool.input_schema),
                strict=False,
            )
            for tool in tools
        ]
    )
