"""Performs one piece of work that is wanted of a task. Owns only who does which kind."""

from __future__ import annotations

from typing import assert_never

from aura_operator.core.commands import CallModel, CallTool, Work
from aura_operator.foreign import contained
from aura_operator.worker.task import calls, models
from aura_operator.worker.task.live import LiveTask


async def perform(live: LiveTask, work: Work, stop: calls.Stop) -> None:
    """Does it, and records what came of it."""
    with contained(work.id):
        match work:
            case CallModel():
                await models.perform(live, work)
            case CallTool():
                await calls.perform(live, work, stop)
            case _:
                assert_never(work)
