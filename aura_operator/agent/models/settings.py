"""Which model an agent talks to, where, and how: what its client, its provider and its errors share. Sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Which model, where, and how. `name` is as pydantic-ai has it (`openai-chat:…`, `anthropic:…`), or `scripted:…`.

    `timeout_seconds` bounds one whole request. `settings` are pydantic-ai's model settings (temperature, …).
    """

    name: str
    base_url: str | None = None
    api_key: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float = 300.0

    @property
    def described(self) -> str:
        """The model as an error names it."""
        return f"model {self.name!r} at {self.base_url}" if self.base_url else f"model {self.name!r}"
