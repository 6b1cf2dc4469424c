"""Model calls through the real adapter over real HTTP, against a provider that behaves like one on a bad day."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence

import pytest

from aura_operator.agent.builtin import SLEEP
from aura_operator.agent.models.client import ModelClient
from aura_operator.agent.models.conversation import Conversation
from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.models.turn import ModelTurn, RequestedCall
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.transcript import Inline, Item, ModelReply, Payload, ToolReturn, UserInput
from aura_operator.errors import ConfigurationError, ModelError
from aura_operator.testing.openai_server import FakeCall, FakeReply, OpenAIServer, openai_server
from tests.agent.desk import said

KEY = "sk-live-0123456789abcdef"
ASKED: tuple[Item, ...] = (UserInput(text="why is db-0 down?"),)


def inline(payload: Payload) -> str:
    assert isinstance(payload, Inline)
    return payload.text


async def ask(
    server: OpenAIServer,
    transcript: Sequence[Item] = ASKED,
    *,
    name: str = "openai-chat:fake",
    timeout_seconds: float = 10.0,
    tools: Sequence[ToolSpec] = (SLEEP,),
) -> ModelTurn:
    client = ModelClient(
        ModelSettings(
            name=name,
            base_url=server.url,
            api_key=KEY,
            settings={"temperature": 0.5},
            timeout_seconds=timeout_seconds,
        )
    )
    try:
        conversation = Conversation("You are on call.", inline)
        return await client.respond(conversation, transcript, tools)
    finally:
        await client.aclose()


async def failure(server: OpenAIServer, **options: object) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(server, **options)  # type: ignore[arg-type]
    return caught.value


async def test_a_streamed_reply_has_text_calls_and_usage() -> None:
    call = FakeCall(tool="sleep", arguments='{"seconds":1.0}')
    async with openai_server(FakeReply(text="I wait a moment.", calls=(call,))) as server:
        turn = await ask(server)

    assert said(turn) == "I wait a moment."
    assert turn.calls == (RequestedCall(part=1, tool="sleep", arguments='{"seconds":1.0}'),)
    assert (turn.usage.requests, turn.usage.input_tokens, turn.usage.output_tokens) == (1, 11, 7)


async def test_the_request_carries_prompt_tools_settings_and_key() -> None:
    async with openai_server(FakeReply(text="ok")) as server:
        await ask(server)

    (request,) = server.requests
    assert request["messages"] == [
        {"role": "system", "content": "You are on call."},
        {"role": "user", "content": "why is db-0 down?"},
    ]
    assert request["temperature"] == 0.5
    assert request["tools"][0]["function"]["parameters"] == SLEEP.input_schema
    assert server.keys == [KEY]


async def test_what_was_journaled_goes_back_and_results_follow_in_call_order() -> None:
    arguments = '{"seconds": 12345678901234567890, "why": "caf\\u00e9"}'
    calls = (
        FakeCall(tool="sleep", arguments=arguments, call_id="call_a"),
        FakeCall(tool="sleep", arguments="{}", call_id="call_b"),
    )
    async with openai_server(FakeReply(text="two naps", calls=calls), FakeReply(text="rested")) as server:
        first = await ask(server)
        transcript = (
            *ASKED,
            ModelReply(payload=Inline(text=first.payload)),
            # in the order in which they came in, which is not that of the calls
            ToolReturn(call=2, part=2, tool="sleep", payload=Inline(text="slept b"), is_error=False),
            ToolReturn(call=1, part=1, tool="sleep", payload=Inline(text="no such bed"), is_error=True),
        )
        answer = await ask(server, transcript)

    assert said(answer) == "rested" and answer.calls == ()
    _, _, assistant, first_return, second_return = server.requests[1]["messages"]
    assert assistant["content"] == "two naps"
    assert first.calls[0].arguments == arguments  # ours is the provider's text; pydantic-ai sends the same value anew
    assert json.loads(assistant["tool_calls"][0]["function"]["arguments"]) == json.loads(arguments)
    assert first_return["tool_call_id"] == "call_a" and "no such bed" in first_return["content"]
    assert first_return["content"] != "no such bed"  # it is marked as an error
    assert second_return == {"role": "tool", "tool_call_id": "call_b", "content": "slept b"}


@pytest.mark.parametrize("cut_politely", [False, True])
async def test_a_stream_that_breaks_off_is_no_reply_and_may_be_tried_again(cut_politely: bool) -> None:
    reply = FakeReply(text="The answer is forty-two.", cut_after_chunks=3, cut_politely=cut_politely)
    async with openai_server(reply) as server:
        error = await failure(server)

    assert error.retriable
    assert len(server.requests) == 1  # the SDK didn't repeat it behind our back


@pytest.mark.parametrize(
    ("reply", "reason", "retriable", "words"),
    [
        (FakeReply(status=429, retry_after=7), "ModelRateLimited", True, "limits the rate"),
        (FakeReply(status=429, code="insufficient_quota"), "ModelQuotaExceeded", False, "raise the account's limit"),
        (FakeReply(status=500), "ModelUnavailable", True, "HTTP 500"),
        (FakeReply(status=503), "ModelUnavailable", True, "HTTP 503"),
        (FakeReply(status=400), "ModelRequestRejected", False, "spec.model.settings"),
        (FakeReply(status=404, code="model_not_found"), "BadModelName", False, "spec.model.name"),
        (FakeReply(status=401), "ModelUnauthorized", False, "apiKeySecretRef"),
    ],
)
async def test_error_answers_say_what_to_do_and_whether_to_try_again(
    reply: FakeReply, reason: str, retriable: bool, words: str
) -> None:
    async with openai_server(reply) as server:
        error = await failure(server)

    assert (error.reason, error.retriable, error.retry_after) == (reason, retriable, reply.retry_after)
    assert words in str(error)
    assert "'openai-chat:fake'" in str(error) and server.url in str(error)
    assert len(server.requests) == 1


async def test_a_rate_limit_passes_and_the_same_client_goes_on() -> None:
    async with openai_server(FakeReply(status=429), FakeReply(text="now")) as server:
        client = ModelClient(ModelSettings(name="openai-chat:fake", base_url=server.url, api_key=KEY))
        conversation = Conversation("", inline)
        with pytest.raises(ModelError):
            await client.respond(conversation, ASKED, ())
        assert said(await client.respond(conversation, ASKED, ())) == "now"
        await client.aclose()


@pytest.mark.behaviour(32)
@pytest.mark.parametrize("echo", [KEY, "sk-live-*********cdef", "sk-l...cdef", "sk-live-0123****"])
async def test_a_key_that_the_provider_echoes_is_not_passed_on(echo: str) -> None:
    async with openai_server(FakeReply(status=401, message=f"Incorrect API key provided: {echo}. See")) as server:
        error = await failure(server)

    assert "Incorrect API key provided: [redacted]" in str(error)
    assert "cdef" not in str(error) and "sk-l" not in str(error)
    # Nor does it hang on in the chain, which a log would print.
    assert error.__cause__ is None and error.__suppress_context__


@pytest.mark.behaviour(29)
@pytest.mark.parametrize(
    "reply", [FakeReply(hang=True), FakeReply(text="a" * 500, chunk_delay_seconds=0.2)], ids=["silent", "dripping"]
)
async def test_a_model_that_does_not_come_to_an_end_is_given_up_in_time(reply: FakeReply) -> None:
    async with openai_server(reply) as server:
        await ask_once_to_load_the_sdk(server)
        begun = time.monotonic()
        error = await failure(server, timeout_seconds=0.5)

    assert (error.reason, error.retriable) == ("ModelTimeout", True)
    assert "0.5 s" in str(error)
    assert time.monotonic() - begun < 2.0


async def ask_once_to_load_the_sdk(server: OpenAIServer) -> None:
    """Loading it takes a second or two, which is no part of what a test measures."""
    await ask(server, name="scripted:warm-up")
    import openai  # noqa: F401


async def test_cancelling_closes_the_request_in_the_middle_of_the_stream() -> None:
    async with openai_server(FakeReply(text="slowly " * 100, chunk_delay_seconds=0.05)) as server:
        request = asyncio.create_task(ask(server))
        await server.streaming.wait()

        request.cancel()

        with pytest.raises(asyncio.CancelledError):
            await request
        async with asyncio.timeout(1):
            await server.hung_up.wait()


async def test_a_provider_that_is_not_there_is_named() -> None:
    async with openai_server(FakeReply()) as server:
        server.url = "http://127.0.0.1:9/v1"
        error = await failure(server)

    assert (error.reason, error.retriable) == ("ModelUnreachable", True)
    assert "http://127.0.0.1:9/v1" in str(error) and "spec.model.baseURL" in str(error)


@pytest.mark.behaviour(29)
@pytest.mark.parametrize("name", ["gpt-5", "nobody:gpt-5", "mistral:large"])
async def test_a_bad_model_name_is_told_without_any_request(name: str) -> None:
    async with openai_server(FakeReply()) as server:
        with pytest.raises(ConfigurationError) as caught:
            await ask(server, name=name)

    assert caught.value.reason == "BadModelName"
    assert repr(name) in str(caught.value) and "spec.model.name" in str(caught.value)
    assert server.requests == []


async def test_an_agent_without_a_key_does_not_get_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with openai_server(FakeReply(text="ok")) as server:
        client = ModelClient(ModelSettings(name="openai-chat:fake", base_url=server.url))
        await client.respond(Conversation("", inline), ASKED, ())
        await client.aclose()

    assert KEY not in server.keys


async def test_lone_surrogates_do_not_reach_the_journal() -> None:
    async with openai_server(FakeReply(text="half a \ud83d smile")) as server:
        turn = await ask(server)

    assert said(turn) == "half a \ufffd smile"
    turn.payload.encode()
    assert json.loads(turn.payload)["fmt"] == "pydantic-ai/2"
