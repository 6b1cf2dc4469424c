"""A model's response as the journal keeps it: JSON text that holds the provider's parts verbatim.

Owns both directions, pydantic-ai to text and back, and nothing else. Import it only where a model is called.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, ModelResponsePart, TextPart, ToolCallPart

from aura_operator.agent.models.turn import RequestedCall
from aura_operator.core.text import clean
from aura_operator.errors import DamagedJournalError, NewerJournalError

FORMAT = "pydantic-ai/2"
SCHEMA = 1  # of the journal, with which this format came: a worker that knows the one reads the other

# Said again by the journal (usage, time), or of no use to any provider.
_NOT_KEPT = ("kind", "parts", "usage", "timestamp", "run_id", "conversation_id", "metadata", "state")


def dump(response: ModelResponse) -> str:
    """The journal's text of a response."""
    # Not dump_json: that one refuses lone surrogates, which models do produce and `_text` replaces.
    whole = ModelMessagesTypeAdapter.dump_python([response], mode="json", exclude_none=True)[0]
    kept = {key: value for key, value in whole.items() if key not in _NOT_KEPT}
    return _text({"fmt": FORMAT, "parts": whole["parts"], "response": kept})


def load(payload: str) -> ModelResponse:
    """The response that `dump` wrote. Raises NewerJournalError for a format or a kind of part that isn't known here,
    DamagedJournalError for what nobody wrote."""
    parsed: dict[str, Any] = {}
    try:
        parsed = json.loads(payload)
        if parsed["fmt"] != FORMAT:
            raise NewerJournalError(f"a model reply is in the format {parsed['fmt']!r}, this version reads {FORMAT!r}")
        message = {**parsed.get("response", {}), "kind": "response", "parts": parsed["parts"]}
        (response,) = ModelMessagesTypeAdapter.validate_python([message])
    except ValidationError as error:
        kinds = sorted({str(part.get("part_kind")) for part in parsed["parts"] if isinstance(part, dict)})
        raise NewerJournalError(
            f"a model reply with parts of the kinds {', '.join(kinds)} can't be read by this version "
            f"({error.error_count()} of them are unknown or malformed)"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedJournalError(f"a model reply in the journal is not what was written: {error!r}") from error
    if not isinstance(response, ModelResponse):
        raise DamagedJournalError("a model reply in the journal is a request, not a response")
    return response


def calls_of(parts: Sequence[ModelResponsePart]) -> tuple[RequestedCall, ...]:
    """The tool calls among the parts, in their order. Tools that the provider runs by itself are not among them."""
    return tuple(
        RequestedCall(part=index, tool=clean(part.tool_name), arguments=_arguments(part.args))
        for index, part in enumerate(parts)
        if isinstance(part, ToolCallPart)
    )


def text_of(parts: Sequence[ModelResponsePart]) -> str:
    """All that the model says aloud, in one piece."""
    return clean("".join(part.content for part in parts if isinstance(part, TextPart)))


def _arguments(args: str | Mapping[str, Any] | None) -> str:
    if args is None:
        return "{}"
    return clean(args if isinstance(args, str) else _text(args))


def _text(value: object) -> str:
    return clean(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
