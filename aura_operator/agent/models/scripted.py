"""The model `scripted:…`: says what its script says. For tests, demos and trying an agent without any provider.

A provider like any that a plugin brings (see plugins.py), registered in this project's own metadata.
Stateless: the step is the number of responses that the conversation already has, so a crash changes nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.settings import ModelSettings as CommonSettings

from aura_operator.agent.models.settings import ModelSettings
from aura_operator.errors import ConfigurationError

SCRIPTED = "scripted"

_SETTINGS = frozenset({"script", *CommonSettings.__annotations__})  # what every provider takes changes nothing here
_STEP_KEYS = frozenset({"text", "calls", "delay_seconds", "error", "echo", "loop"})
_AFTER_THE_END: Mapping[str, Any] = {"text": "done"}


def scripted_model(settings: ModelSettings) -> FunctionModel:
    """A model that plays the `script` of its settings, a list of steps.

    A step: `text`, `calls` [{`tool`, `args`: object or JSON text}], `delay_seconds` before anything is said, `echo`
    (the text becomes all that the model was told), `error` {`status`, `retry_after`}, and `loop` on the last step to
    repeat it for ever. Past the end it says "done". Raises ConfigurationError if the script is none.
    """
    name = settings.name.partition(":")[2]
    script = _checked(name, settings.settings)

    async def play(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        number = sum(isinstance(message, ModelResponse) for message in messages)
        step = _step(script, number)
        await asyncio.sleep(step.get("delay_seconds", 0.0))
        if (error := step.get("error")) is not None:
            raise _failure(name, error)
        # Always one piece of text first: a stream that yields nothing at all is an error to pydantic-ai.
        yield _told(messages) if step.get("echo") else step.get("text", "")
        for index, call in enumerate(step.get("calls", ())):
            arguments = call.get("args", {})
            yield {
                index: DeltaToolCall(
                    name=call["tool"],
                    json_args=arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
                    tool_call_id=f"call-{number}-{index}",
                )
            }

    return FunctionModel(stream_function=play, model_name=f"{SCRIPTED}:{name}")


def _step(script: Sequence[Mapping[str, Any]], number: int) -> Mapping[str, Any]:
    if number < len(script):
        return script[number]
    return script[-1] if script and script[-1].get("loop") else _AFTER_THE_END


def _told(messages: Sequence[ModelMessage]) -> str:
    """All that people and tools have said, a line each, in order."""
    return "\n".join(
        str(part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart | ToolReturnPart)
    )


def _failure(name: str, error: Mapping[str, Any]) -> ModelHTTPError:
    status = int(error.get("status", 500))
    headers = {"retry-after": str(error["retry_after"])} if "retry_after" in error else {}
    return ModelHTTPError(status, f"{SCRIPTED}:{name}", body={"message": "the script says so"}, headers=headers)


def _checked(name: str, settings: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    script, problem = settings.get("script", []), None
    if strange := sorted(settings.keys() - _SETTINGS):
        problem = f"there is no setting {', '.join(strange)}; it has script, and takes what every provider does"
    elif not isinstance(script, list) or not all(isinstance(step, Mapping) for step in script):
        problem = "settings.script must be a list of steps"
    else:
        unknown = sorted({key for step in script for key in step} - _STEP_KEYS)
        problem = f"a step has no {', '.join(unknown)}; it has {', '.join(sorted(_STEP_KEYS))}" if unknown else None
    if problem is not None:
        raise ConfigurationError(f"model '{SCRIPTED}:{name}': {problem}", reason="BadModelSettings")
    assert isinstance(script, list)
    return script
