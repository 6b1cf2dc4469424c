"""What a model answers, as values: the port's side of a response. Imports no provider and no library of one."""

from __future__ import annotations

from dataclasses import dataclass

from aura_operator.core.entries import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A tool call that the model asks for.

    `part` is its index among the reply's parts, `tool` the name that the model wrote (of a tool it was offered, or
    not), `arguments` the JSON text to the byte as the model wrote it; "{}" where it wrote none.
    """

    part: int
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTurn:
    """A complete response.

    `payload` is what the journal keeps, in the format of `agent/models/reply.py`: the next request is built from it,
    perhaps by another process. `calls` are in the order of the reply's parts; if there are none, the task has its
    answer. `usage` counts this one request.
    """

    payload: str
    calls: tuple[RequestedCall, ...]
    usage: Usage
