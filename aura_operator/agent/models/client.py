"""One request to a language model: a conversation goes in, what the model said and wants comes out.

Owns the request, its deadline and its cancellation. Whether and when to try again is the caller's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.models.turn import ModelTurn
from aura_operator.agent.redaction import Redactor
from aura_operator.core.entries import Usage
from aura_operator.core.transcript import Item
from aura_operator.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

    from aura_operator.agent.models.conversation import Conversation
    from aura_operator.agent.specs import ToolSpec

# A call of the SDK's own would be invisible to the budget and to cancellation by epoch: retries are the caller's.
_NO_SDK_RETRIES = {"max_retries": 0}


class ModelClient:
    """Speaks to one model; its connections live until `aclose`. Requests may run side by side."""

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._redactor = Redactor([settings.api_key] if settings.api_key else [])
        self._resources = AsyncExitStack()
        self._model: Model | None = None
        self._opening = asyncio.Lock()

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
        await self._resources.aclose()

    async def _open(self) -> Model:
        async with self._opening:
            if self._model is None:
                # A provider's SDK takes a second or two to load: in a thread, or the worker's Lease waits for it.
                model = await asyncio.to_thread(_built, self._settings, self._resources)
                try:
                    self._model = await self._resources.enter_async_context(model)
                except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - foreign code
                    raise ConfigurationError(
                        self._redactor.scrub_error(f"model {self._settings.name!r} can't be opened: {error!r}"),
                        reason="BadModelProvider",
                    ) from None
            return self._model

    async def _request(self, model: Model, messages: list[ModelMessage], tools: Sequence[ToolSpec]) -> ModelResponse:
        from pydantic_ai.direct import model_request_stream

        from aura_operator.agent.models.errors import incomplete, translated

        settings: Any = {**self._settings.settings, **_NO_SDK_RETRIES, "timeout": self._settings.timeout_seconds}
        try:
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
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # The SDK's own, let out: nobody cancelled this request.
            raise translated(
                RuntimeError(f"cancelled from within: {error!r}"), self._settings, self._redactor
            ) from None
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - an SDK's; none may end a worker
            cause = error if isinstance(error, Exception) else RuntimeError(repr(error))
            raise translated(cause, self._settings, self._redactor) from None
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
