"""How often a worker writes: one append a step, in virtual time with the real runner, writer and controller."""

from __future__ import annotations

import asyncio

import pytest

from aura_operator.testing.clock import virtual_time
from tests.worker.world import World

STEPS = 12
BESIDES = 3  # the claim, the last answer, the end


async def patches(tool: str, tool_seconds: float) -> int:
    """The writes of a task whose model calls one tool after the other."""
    world = World([(tool,)] * STEPS)
    world.tool_seconds = tool_seconds
    await world.create()
    async with world.controlled(), asyncio.TaskGroup() as group:
        life = world.life()
        running = group.create_task(life.run())
        assert (await world.ended())["phase"] == "Succeeded"
        running.cancel()
    assert world.starts(tool) == STEPS
    return life.points.count("after patch auratasks/one")


@pytest.mark.behaviour(30)
@pytest.mark.parametrize("tool_seconds", [0.001, 0.05, 0.3, 5.0, 60.0])
@virtual_time
async def test_a_read_step_costs_one_append_whatever_the_tool_takes(tool_seconds: float) -> None:
    assert await patches("s__read", tool_seconds) <= STEPS + BESIDES


@pytest.mark.parametrize("tool_seconds", [0.001, 0.3, 5.0])
@virtual_time
async def test_a_once_step_costs_one_append_for_its_intent_and_one_for_its_result_at_most(tool_seconds: float) -> None:
    """Its result is written before the model answers again, or else a crash would leave the effect in doubt."""
    assert STEPS + BESIDES <= await patches("s__once", tool_seconds) <= 2 * STEPS + BESIDES
