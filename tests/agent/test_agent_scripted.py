"""The scripted model: stateless, so that a crash changes nothing of what it says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from aura_operator.agent.models.client import ModelClient
from aura_operator.agent.models.conversation import Conversation
from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.models.turn import ModelTurn
from aura_operator.core.transcript import Inline, Item, ModelReply, Payload, Steered, ToolReturn, UserInput
from aura_operator.errors import ConfigurationError, ModelError
from tests.agent.desk import said


def inline(payload: Payload) -> str:
    assert isinstance(payload, Inline)
    return payload.text


async def play(script: Any, transcript: Sequence[Item]) -> ModelTurn:
    """One request by a client that has just been born: as after a crash."""
    client = ModelClient(ModelSettings(name="scripted:test", settings={"script": script}))
    try:
        return await client.respond(Conversation("", inline), transcript, ())
    finally:
        await client.aclose()


async def test_the_step_follows_from_the_conversation_alone() -> None:
    script = [{"calls": [{"tool": "a", "args": {"x": 1}}, {"tool": "b", "args": "{raw"}]}, {"text": "fine"}]
    transcript: list[Item] = [UserInput(text="go")]

    first = await play(script, transcript)
    assert [(call.tool, call.arguments) for call in first.calls] == [("a", '{"x": 1}'), ("b", "{raw")]
    assert await play(script, transcript) == first

    transcript.append(ModelReply(payload=Inline(text=first.payload)))
    for call in first.calls:
        result = Inline(text="ok")
        transcript.append(ToolReturn(call=call.part, part=call.part, tool=call.tool, payload=result, is_error=False))
    second = await play(script, transcript)
    assert (said(second), second.calls) == ("fine", ())

    transcript.append(ModelReply(payload=Inline(text=second.payload)))
    assert said(await play(script, transcript)) == "done"


async def test_an_echo_says_all_that_the_model_was_told() -> None:
    script = [{"text": "", "calls": [{"tool": "a"}]}, {"echo": True}]
    first = await play(script, (UserInput(text="go"),))
    (call,) = first.calls
    told = await play(
        script,
        (
            UserInput(text="go"),
            ModelReply(payload=Inline(text=first.payload)),
            ToolReturn(call=1, part=call.part, tool="a", payload=Inline(text="the result"), is_error=False),
            Steered(text="faster", by="alice"),
        ),
    )

    assert said(told) == "go\nthe result\nfaster"


async def test_a_loop_repeats_its_last_step_for_ever() -> None:
    script = [{"text": "once"}, {"text": "again", "loop": True}]
    transcript: list[Item] = [UserInput(text="go")]
    texts = []
    for _ in range(4):
        turn = await play(script, transcript)
        texts.append(said(turn))
        transcript.append(ModelReply(payload=Inline(text=turn.payload)))

    assert texts == ["once", "again", "again", "again"]


async def test_an_error_step_fails_as_a_provider_does() -> None:
    with pytest.raises(ModelError) as caught:
        await play([{"error": {"status": 429, "retry_after": 2}}], (UserInput(text="go"),))

    assert (caught.value.reason, caught.value.retriable, caught.value.retry_after) == ("ModelRateLimited", True, 2.0)


@pytest.mark.parametrize("script", ["text", [7], [{"txet": "typo"}]])
async def test_a_script_that_is_none_is_told(script: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await play(script, (UserInput(text="go"),))

    assert caught.value.reason == "BadModelSettings"


async def test_calls_without_ids_of_the_providers_have_stable_ones() -> None:
    turn = await play([{"calls": [{"tool": "a"}]}], (UserInput(text="go"),))

    assert json.loads(turn.payload)["parts"][turn.calls[0].part]["tool_call_id"] == "call-0-0"


async def test_a_setting_that_is_misspelt_is_named_with_what_there_is() -> None:
    client = ModelClient(ModelSettings(name="scripted:test", settings={"scrypt": [{"text": "no"}]}))
    with pytest.raises(ConfigurationError, match=r"no setting scrypt; it has script") as caught:
        await client.respond(Conversation("", inline), (UserInput(text="go"),), ())
    assert caught.value.reason == "BadModelSettings"
