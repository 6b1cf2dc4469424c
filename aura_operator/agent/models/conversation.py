"""Turns what the journal's fold says was said into the messages of a model request.

Owns the order of messages and the form of tool returns; reads payloads only through what it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from aura_operator.agent.models import reply
from aura_operator.core.text import clean
from aura_operator.core.transcript import Item, ModelReply, Payload, Steered, ToolReturn, UserInput
from aura_operator.errors import JournalError

_NEVER_MADE = "This call was not made: the turn ended before it."


class Conversation:
    """The messages of one task, converted once: a step costs what it adds, not what went before.

    `resolve` gives the text of a payload, wherever it is kept.
    """

    def __init__(self, system_prompt: str, resolve: Callable[[Payload], str]) -> None:
        self._resolve = resolve
        self._converted: list[Item] = []
        self._messages: list[ModelMessage] = []  # all but the open request
        self._open: list[ModelRequestPart] = [SystemPromptPart(clean(system_prompt))] if system_prompt else []
        self._returns: dict[int, ToolReturnPart] = {}  # of the latest reply, by the index of the call's part
        self._calls: dict[int, ToolCallPart] = {}  # that the latest reply asks for

    def messages(self, transcript: Sequence[Item]) -> list[ModelMessage]:
        """The messages of a request after `transcript`, which only ever grows. Raises JournalError.

        Tool returns stand right after the reply that asked for them, in its order, whenever they came in.
        """
        known = len(self._converted)
        # The identity of the last one settles it in the ordinary case; comparing all would cost with the length.
        grown = len(transcript) >= known and (not known or transcript[known - 1] is self._converted[-1])
        if not grown and list(transcript[:known]) != self._converted:
            raise JournalError("a transcript was rewritten: make a new Conversation for it")
        for item in transcript[known:]:
            self._add(item)
            self._converted.append(item)
        waiting = self._request_parts()
        return [*self._messages, ModelRequest(parts=waiting)] if waiting else list(self._messages)

    def _add(self, item: Item) -> None:
        match item:
            case UserInput(text=text) | Steered(text=text):
                self._open.append(UserPromptPart(clean(text)))
            case ModelReply(payload=payload):
                response = reply.load(self._resolve(payload))
                self._close_request()
                self._messages.append(response)
                self._calls = _calls(response)
            case ToolReturn():
                self._returns[item.part] = self._tool_return(item)
            case _:
                assert_never(item)

    def _tool_return(self, item: ToolReturn) -> ToolReturnPart:
        call = self._calls.get(item.part)
        if call is None:
            raise JournalError(
                f"the result of call {item.call} ({item.tool}) belongs to part {item.part} of the latest model reply, "
                "which asks for no tool there: the journal is damaged"
            )
        return ToolReturnPart(
            tool_name=call.tool_name,
            content=clean(self._resolve(item.payload)),
            tool_call_id=call.tool_call_id,
            outcome="failed" if item.is_error else "success",
        )

    def _request_parts(self) -> list[ModelRequestPart]:
        returns: list[ModelRequestPart] = []
        for part, call in self._calls.items():
            # Providers refuse a conversation in which a call has no result, for ever after.
            missing = ToolReturnPart(
                tool_name=call.tool_name, content=_NEVER_MADE, tool_call_id=call.tool_call_id, outcome="failed"
            )
            returns.append(self._returns.get(part, missing))
        return returns + self._open

    def _close_request(self) -> None:
        parts = self._request_parts()
        if parts:
            self._messages.append(ModelRequest(parts=parts))
        self._open, self._returns, self._calls = [], {}, {}


def _calls(response: ModelResponse) -> dict[int, ToolCallPart]:
    return {index: part for index, part in enumerate(response.parts) if isinstance(part, ToolCallPart)}
