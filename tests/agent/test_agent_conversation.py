"""How a transcript becomes the messages of a request."""

from __future__ import annotations

import json

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from aura_operator.agent.models import reply
from aura_operator.agent.models.conversation import Conversation
from aura_operator.core.transcript import Inline, Item, ModelReply, Payload, Steered, ToolReturn, UserInput
from aura_operator.errors import JournalError


def inline(payload: Payload) -> str:
    assert isinstance(payload, Inline)
    return payload.text


def replied(*parts: TextPart | ToolCallPart | ThinkingPart) -> ModelReply:
    return ModelReply(payload=Inline(text=reply.dump(ModelResponse(parts=list(parts)))))


def returned(part: int, text: str, *, is_error: bool = False) -> ToolReturn:
    return ToolReturn(call=part, part=part, tool="t", payload=Inline(text=text), is_error=is_error)


def shape(messages: list[ModelMessage]) -> list[list[tuple[str, str]]]:
    return [[(part.part_kind, str(getattr(part, "content", ""))) for part in message.parts] for message in messages]


CALLS = replied(
    TextPart("let me look"), ToolCallPart("a", "{}", "id-a"), ToolCallPart("b", '{"x":1}', "id-b"), TextPart("…")
)
TRANSCRIPT: tuple[Item, ...] = (
    UserInput(text="hello"),
    CALLS,
    returned(2, "from b"),
    Steered(text="hurry", by="alice"),
    returned(1, "broken", is_error=True),
)


def test_returns_stand_in_call_order_and_people_after_them() -> None:
    messages = Conversation("be kind", inline).messages(TRANSCRIPT)

    assert shape(messages) == [
        [("system-prompt", "be kind"), ("user-prompt", "hello")],
        [("text", "let me look"), ("tool-call", ""), ("tool-call", ""), ("text", "…")],
        [("tool-return", "broken"), ("tool-return", "from b"), ("user-prompt", "hurry")],
    ]
    first, second, _ = messages[2].parts
    assert isinstance(first, ToolReturnPart) and (first.tool_call_id, first.outcome) == ("id-a", "failed")
    assert isinstance(second, ToolReturnPart) and (second.tool_call_id, second.outcome) == ("id-b", "success")


def test_growing_step_by_step_gives_the_same_as_all_at_once() -> None:
    growing = Conversation("be kind", inline)
    for length in range(1, len(TRANSCRIPT) + 1):
        messages = growing.messages(TRANSCRIPT[:length])
        assert shape(messages) == shape(Conversation("be kind", inline).messages(TRANSCRIPT[:length]))


def test_a_payload_is_resolved_once_however_long_the_task_grows() -> None:
    resolved: list[str] = []

    def counting(payload: Payload) -> str:
        resolved.append(inline(payload))
        return resolved[-1]

    conversation = Conversation("", counting)
    transcript: list[Item] = [UserInput(text="go")]
    for step in range(20):
        transcript += [replied(ToolCallPart("a", "{}", f"id-{step}")), returned(0, f"result {step}")]
        conversation.messages(tuple(transcript))

    assert len(resolved) == 40


def test_a_call_that_was_never_made_is_answered_so_that_no_provider_refuses_the_rest() -> None:
    messages = Conversation("", inline).messages((UserInput(text="a"), CALLS, returned(1, "ok"), UserInput(text="b")))

    assert shape(messages)[-1] == [
        ("tool-return", "ok"),
        ("tool-return", "This call was not made: the turn ended before it."),
        ("user-prompt", "b"),
    ]


def test_a_rewritten_transcript_is_refused() -> None:
    conversation = Conversation("", inline)
    conversation.messages(TRANSCRIPT)

    with pytest.raises(JournalError, match="rewritten"):
        conversation.messages((*TRANSCRIPT[:-1], returned(1, "another result")))


def test_signatures_and_provider_details_survive() -> None:
    thinking = ThinkingPart("hm", signature="s1g", provider_name="anthropic", provider_details={"k": [1, 2.5]})
    response = ModelResponse(
        parts=[thinking, ToolCallPart("a", {"n": 1.0, "é": None}, "id-a", provider_details={"t": "x"})],
        provider_name="anthropic",
        finish_reason="tool_call",
    )

    loaded = reply.load(reply.dump(response))

    assert loaded.parts == response.parts
    assert (loaded.provider_name, loaded.finish_reason) == ("anthropic", "tool_call")
    assert reply.dump(loaded) == reply.dump(response)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": 1.0,  "b":12345678901234567890}', '{"a": 1.0,  "b":12345678901234567890}'),
        ({"é": [1, 2]}, '{"é":[1,2]}'),
        (None, "{}"),
        ("{broken", "{broken"),
    ],
)
def test_arguments_are_the_providers_own_text(arguments: str | dict[str, object] | None, text: str) -> None:
    (call,) = reply.calls_of([ToolCallPart("a", arguments, "id")])
    assert call.arguments == text


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ('{"fmt": "pydantic-ai/3", "parts": []}', "'pydantic-ai/3'"),
        ('{"fmt": "pydantic-ai/2", "parts": [{"part_kind": "telepathy"}]}', "kinds telepathy can't be read"),
        ('{"fmt": "pydantic-ai/2"}', "not what was written"),
        ("[]", "not what was written"),
        ("{", "not what was written"),
    ],
)
def test_a_reply_that_this_version_does_not_know_is_refused_in_clear_words(payload: str, words: str) -> None:
    with pytest.raises(JournalError, match=words):
        Conversation("", inline).messages((ModelReply(payload=Inline(text=payload)),))


def test_the_system_prompt_stands_once_at_the_beginning() -> None:
    messages = Conversation("be kind", inline).messages(TRANSCRIPT)

    prompts = [part for message in messages for part in message.parts if isinstance(part, SystemPromptPart)]
    assert len(prompts) == 1
    assert isinstance(messages[0], ModelRequest) and isinstance(messages[0].parts[1], UserPromptPart)
    assert json.loads(inline(CALLS.payload))["parts"][1]["args"] == "{}"
