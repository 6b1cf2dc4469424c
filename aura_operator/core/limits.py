"""The bounds that an agent sets to its tasks, as core needs them. Owns no default of the API: those are in api/."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The agent's bounds. `tokens` counts input and output of all model calls; None: no bound.

    `expires_after_seconds` is how long people have to answer a request.
    """

    turns: int = 50
    tokens: int | None = None
    recoveries: int = 5
    model_retries: int = 5
    expires_after_seconds: float = 3600.0
