"""What the model has been told and has answered so far, in order: the fold's result that `agent` turns into a request.

Owns the shapes only. Texts are payloads: what they hold is opaque to core.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """A payload that stands in the journal line itself."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A payload in an AuraCheckpoint of its own. `sha256` is hex; both are of the UTF-8 bytes."""

    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A sensitive payload, in a Secret that the task owns."""

    name: str
    size_bytes: int


Payload = Inline | Stored | Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class UserInput:
    """The task's input (or an earlier turn's, in a session)."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A model response: JSON text `{"fmt": …, "parts": […]}` with the provider's parts verbatim."""

    payload: Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReturn:
    """What became of the call at index `part` of the latest reply's parts, as plain text for the model."""

    call: int
    part: int
    tool: str
    payload: Payload
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """What a person told the task while it ran."""

    text: str
    by: str


Item = UserInput | ModelReply | ToolReturn | Steered
