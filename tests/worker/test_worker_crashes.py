"""A worker is killed at every point of its life, and another one brings the task to its end: in one event loop, with
the real runner, journal, claims and reconcilers. The ledger counts."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from aura_operator.core.lifecycle import Phase
from aura_operator.store.journal_reads import read_journal
from aura_operator.testing.clock import run_virtual, virtual_time
from tests.worker.world import World

PROGRAM = [("s__read", "s__idempotent", "s__once"), ("s__approved", "s__read"), ("sleep",), ("s__once",)]


async def lived(world: World, *deaths: int | None) -> list[list[str]]:
    """The task's whole story: the worker dies at the given points of its lives, then lives on."""
    await world.create()
    passed: list[list[str]] = []
    async with world.controlled(), asyncio.TaskGroup() as group:
        ending = group.create_task(world.ended())
        for dies_at in (*deaths, None):
            life = world.life(dies_at=dies_at)
            running = group.create_task(life.run())
            await asyncio.wait({running, ending}, return_when=asyncio.FIRST_COMPLETED)
            passed.append(life.points)
            if ending.done():
                running.cancel()
                break
    return passed


async def check(world: World, *, succeeded: bool = True) -> None:
    """What must hold after every story."""
    status = await world.status()
    if succeeded:
        assert status["phase"] == Phase.SUCCEEDED.value, status
        assert status["unresolved"] == []
        assert status["result"] == {"text": "done"}
    once = Counter(line.key for line in world.ledger if line.tool in ("s__once", "s__approved"))
    assert all(count == 1 for count in once.values()), f"a Once effect was started twice: {world.ledger}"
    calls = sum(tool != "sleep" for turn in world.turns for tool in turn)
    assert len({line.key for line in world.ledger}) <= calls, "one key per call, whoever makes it"
    task = await world.task()
    await read_journal(world.memory, task, world.clock)


@virtual_time
async def test_left_alone_it_makes_each_call_once() -> None:
    world = World(PROGRAM)
    await lived(world)
    await check(world)
    assert Counter(line.tool for line in world.ledger) == {
        "s__read": 2,
        "s__idempotent": 1,
        "s__once": 2,
        "s__approved": 1,
    }
    assert (await world.status())["recoveries"] == 0


def points_of(program: list[tuple[str, ...]]) -> list[str]:
    return run_virtual(lived(World(program)))[0]


@pytest.mark.behaviour(2)
@pytest.mark.behaviour(19)
def test_killed_at_any_point_the_task_finishes_and_each_once_effect_is_started_at_most_once() -> None:
    points = points_of(PROGRAM)
    assert len(points) > 60
    for number, name in enumerate(points, 1):

        async def story(number: int = number) -> None:
            world = World(PROGRAM)
            await lived(world, number)
            await check(world)

        try:
            run_virtual(story())
        except BaseException as error:
            error.add_note(f"killed at point {number}: {name}")
            raise


@pytest.mark.behaviour(2)
@pytest.mark.parametrize("seed", range(40))
def test_killed_several_times_at_random(seed: int) -> None:
    chance = random.Random(seed)
    deaths = [chance.randint(1, 40) for _ in range(chance.randint(2, 6))]

    async def story() -> None:
        world = World(PROGRAM)
        await lived(world, *deaths)
        await check(world)

    run_virtual(story())


@pytest.mark.behaviour(3)
@virtual_time
async def test_killed_in_a_once_call_it_is_asked_about_and_retried_only_if_a_person_says_so() -> None:
    for choice, starts in (("Done", 1), ("Retry", 2)):
        points = (await _points_in_own_world([("s__once",)])).index("in s__once") + 1
        world = World([("s__once",)], choice=choice)
        await lived(world, points)
        assert world.starts("s__once") == starts, choice
        assert len({line.key for line in world.ledger}) == 1
        assert (await world.status())["phase"] == "Succeeded"


@pytest.mark.behaviour(3)
@virtual_time
async def test_an_effect_in_doubt_that_is_given_up_stays_named() -> None:
    dies_at = (await _points_in_own_world([("s__once",)])).index("in s__once") + 1
    world = World([("s__once",)], choice="Abort")
    await lived(world, dies_at)
    status = await world.status()
    assert status["phase"] == "Failed" and world.starts("s__once") == 1
    assert [effect["tool"] for effect in status["unresolved"]] == ["s__once"]


@pytest.mark.behaviour(4)
@virtual_time
async def test_killed_in_an_idempotent_call_it_is_made_again_with_the_same_key() -> None:
    dies_at = (await _points_in_own_world([("s__idempotent",)])).index("in s__idempotent") + 1
    world = World([("s__idempotent",)])
    await lived(world, dies_at)
    await check(world)
    assert world.starts("s__idempotent") == 2
    assert len({line.key for line in world.ledger}) == 1
    assert {line.epoch for line in world.ledger} == {1, 2}


@pytest.mark.behaviour(12)
@virtual_time
async def test_a_task_that_kills_its_worker_each_time_ends_as_poisoned() -> None:
    points = await _points_in_own_world([("s__idempotent",)])
    world = World([("s__idempotent",)], recoveries=3)
    claimed_to_death = next(number for number, name in enumerate(points, 1) if name == "in s__idempotent")
    # Later lives come to the call in fewer steps: killed as soon as the ledger has the line.
    await world.create()
    async with world.controlled(), asyncio.TaskGroup() as group:
        ending = group.create_task(world.ended())
        lives = 0
        while not ending.done():
            life = world.life(dies_at=claimed_to_death if lives == 0 else None)
            running = group.create_task(life.run())
            before = len(world.ledger)
            while not running.done() and not ending.done() and len(world.ledger) == before:
                await world.clock.advance(0.01)
            if ending.done():
                running.cancel()
                break
            life.kill()
            await running
            lives += 1
    status = await world.status()
    assert (status["phase"], status["reason"]) == ("Failed", "Poisoned")
    assert lives == 4 and world.starts("s__idempotent") == 4
    assert [effect["tool"] for effect in status["unresolved"]] == ["s__idempotent"]


@pytest.mark.behaviour(13)
@virtual_time
async def test_a_worker_that_dies_during_a_sleep_changes_nothing_about_its_end() -> None:
    async def wake_time(*deaths: int) -> float:
        world = World([("sleep",)])
        begin = world.clock.now()
        await lived(world, *deaths)
        await check(world)
        return world.clock.now() - begin

    undisturbed = await wake_time()
    assert 60 < undisturbed < 64
    for dies_at in (8, 12, 14):
        assert abs(await wake_time(dies_at) - undisturbed) < 3


async def _points_in_own_world(program: list[tuple[str, ...]]) -> list[str]:
    return (await lived(World(program)))[0]
