"""Waits by condition for what other processes bring about. Owns how long, and the error when it doesn't come."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any

from aura_operator.errors import AuraError

WAIT_SECONDS = 30.0
PAUSE_SECONDS = 0.01

What = str | Callable[[], str]
"""What is awaited, in words; called only when it didn't come, so it may tell what was seen last."""


class NotInTimeError(AuraError):
    """What was awaited did not come in time."""

    reason = "NotInTime"


async def until(
    holds: Callable[[], Any], what: What, seconds: float = WAIT_SECONDS, *, pause_seconds: float = PAUSE_SECONDS
) -> Any:
    """What `holds` returns, or what awaiting that gives, once it is true. Raises NotInTimeError."""
    for pause in _tries(what, seconds, pause_seconds):
        found = holds()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        await asyncio.sleep(pause)
    raise AssertionError("_tries raises by itself")


def wait_until(
    holds: Callable[[], Any], what: What, seconds: float = WAIT_SECONDS, *, pause_seconds: float = PAUSE_SECONDS
) -> Any:
    """The same where no event loop runs."""
    for pause in _tries(what, seconds, pause_seconds):
        if found := holds():
            return found
        time.sleep(pause)
    raise AssertionError("_tries raises by itself")


def _tries(what: What, seconds: float, pause_seconds: float) -> Iterator[float]:
    deadline = time.monotonic() + seconds
    yield pause_seconds  # once in any case: this process may have been held up itself
    while time.monotonic() < deadline:
        yield pause_seconds
    raise NotInTimeError(f"within {seconds:g} s there was no {what() if callable(what) else what}")
