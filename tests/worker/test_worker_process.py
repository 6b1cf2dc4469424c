"""A worker's life as a process: how it begins, how many tasks it takes, how it drains and ends. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aura_operator.core.lifecycle import Phase
from aura_operator.errors import FencedError, NotFoundError, OutcomeUnknownError
from aura_operator.store.interface import Selection
from aura_operator.store.leases import POD_UID, lease_ref, lease_view, new_lease
from aura_operator.store.resources import LEASES, TASKS, Ref
from aura_operator.store.view import task_ref, task_view
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Late, Refuse, calls
from tests.worker.world import HOME, NAMESPACE, ONE, Life, World, one_worker

LEASE = lease_ref(HOME, "w")


def task(number: int) -> Ref:
    return task_ref(NAMESPACE, f"t{number}")


async def phases(world: World) -> list[Phase]:
    page = await world.memory.list(Selection(resource=TASKS))
    return [task_view(manifest).phase for manifest in page.items]


async def gone(world: World, ref: Ref) -> bool:
    try:
        await world.memory.get(ref)
    except NotFoundError:
        return True
    return False


# Slots


@virtual_time
async def test_no_more_tasks_run_at_once_than_there_are_slots_and_each_gets_its_turn() -> None:
    async with one_worker([("s__read",)], slots=2, tool_seconds=10.0) as (world, life):
        for number in range(6):
            await world.create(task(number))
        most = 0
        while Phase.SUCCEEDED not in (found := set(await phases(world))) or found != {Phase.SUCCEEDED}:
            running = (await phases(world)).count(Phase.RUNNING)
            most = max(most, running)
            assert len(life.worker.slots) <= 2
            await world.clock.sleep(0.5)
        assert most == 2
        assert 30 < world.clock.boot() - 1000 < 45, "three rounds of two"


@virtual_time
async def test_what_a_full_worker_can_not_take_another_one_does_at_once() -> None:
    async with one_worker([("s__read",)], slots=1, tool_seconds=30.0) as (world, _):
        await world.create(task(0))
        await world.until(task(0), Phase.RUNNING)
        second = asyncio.ensure_future(world.life("second").run())
        await world.clock.sleep(10)
        await world.create(task(1))
        began = world.clock.boot()
        status = await world.until(task(1), Phase.RUNNING)
        assert status["owner"]["worker"] == "second" and world.clock.boot() - began < 1
        second.cancel()


@virtual_time
async def test_the_lease_tells_how_many_slots_are_free() -> None:
    async with one_worker([("s__read",)], slots=3, tool_seconds=60.0) as (world, _):
        await world.create(task(0))
        await world.until(task(0), Phase.RUNNING)
        await world.clock.sleep(6)  # the next renewal
        assert lease_view(await world.memory.get(LEASE)).free_slots == 2


# The beginning


async def stopped_in(life: Life, seconds: float) -> float:
    """How long a worker takes to end that is stopped after a while."""
    running = asyncio.ensure_future(life.run())
    await life.world.clock.sleep(seconds)
    assert not running.done()
    began = life.world.clock.boot()
    life.drain()
    await running
    return life.world.clock.boot() - began


@virtual_time
async def test_a_stop_during_the_preflight_ends_the_process_at_once_and_it_never_had_a_lease() -> None:
    async def never_fit(tell: Callable[[str], None]) -> None:
        await asyncio.Event().wait()

    world = World(())
    life = world.life(preflight=never_fit)
    assert await stopped_in(life, 60) < 1
    assert await gone(world, LEASE) and life.worker.not_ready()
    assert "before create leases/w" not in life.points


@virtual_time
async def test_a_stop_while_another_pods_lease_is_in_the_way_ends_the_process_and_leaves_that_lease() -> None:
    world = World(())
    foreign = new_lease(
        LEASE, holder="other.1", seconds=15, now=world.clock.now(), role="worker", annotations={POD_UID: "other"}
    )
    await world.memory.create(LEASES, foreign)
    assert await stopped_in(world.life(), 60) < 1
    assert lease_view(await world.memory.get(LEASE)).incarnation == "other.1"


@virtual_time
async def test_a_stop_while_the_answer_about_its_lease_is_awaited_leaves_no_lease_behind() -> None:
    world = World(())
    life = world.life()
    life.store.add(Late(seconds=0.2), calls("create", LEASES))
    life.store.add(Refuse(OutcomeUnknownError("cut")), calls("patch", LEASES))
    assert await stopped_in(life, 3) < 1
    assert await gone(world, LEASE)


@virtual_time
async def test_it_is_ready_while_it_holds_its_lease_and_takes_tasks() -> None:
    fit = asyncio.Event()

    async def preflight(tell: Callable[[str], None]) -> None:
        await fit.wait()

    world = World([("s__once",)])
    world.tool_seconds = 30.0
    life = world.life(preflight=preflight)
    running = asyncio.ensure_future(life.run())
    ready = {}
    await world.clock.sleep(1)
    ready["before the preflight has passed"] = life.worker.not_ready() is None
    fit.set()
    await world.clock.sleep(1)
    ready["with its Lease"] = life.worker.not_ready() is None
    life.store.add(Refuse(OutcomeUnknownError("cut")), calls("patch", LEASES))
    await world.clock.sleep(15)
    ready["after its deadline"] = life.worker.not_ready() is None
    life.store.clear()
    await world.clock.sleep(2)
    ready["renewed"] = life.worker.not_ready() is None
    await world.create()
    await life.reached("in s__once")
    life.drain()
    await world.clock.sleep(1)
    ready["draining"] = life.worker.not_ready() is None
    await running
    assert [name for name, is_ready in ready.items() if is_ready] == ["with its Lease", "renewed"]


# The end


@pytest.mark.behaviour(6)
@virtual_time
async def test_a_drain_claims_nothing_more_hands_everything_over_and_gives_the_lease_up() -> None:
    async with one_worker([("s__read",)], slots=2, tool_seconds=60.0) as (world, life):
        for number in range(4):
            await world.create(task(number))
        await world.until(task(0), Phase.RUNNING)
        await world.clock.sleep(2)
        began = world.clock.boot()
        life.drain()
        while not await gone(world, LEASE):
            await world.clock.sleep(0.1)
        assert world.clock.boot() - began < 2
        assert await phases(world) == [Phase.PENDING] * 4
        await world.clock.sleep(30)
        assert await phases(world) == [Phase.PENDING] * 4
        second = asyncio.ensure_future(world.life("second").run())
        for number in range(4):
            assert (await world.ended(task(number)))["recoveries"] == 0
        second.cancel()


@pytest.mark.behaviour(6)
@virtual_time
async def test_while_it_drains_it_offers_no_slot_and_takes_not_even_what_needs_none() -> None:
    async with one_worker([("s__once",)], tool_seconds=15.0) as (world, life):
        await world.create()
        await life.reached("in s__once")
        life.drain()
        await world.create(task(0), desired="Cancel")
        await world.clock.sleep(10)
        assert lease_view(await world.memory.get(LEASE)).free_slots == 0
        assert (await world.task(task(0))).phase is Phase.PENDING
        await world.until(ONE, Phase.PENDING)
        assert world.starts("s__once") == 1


@pytest.mark.behaviour(6)
@virtual_time
async def test_an_effect_that_outlasts_the_grace_period_is_left_in_doubt_and_the_process_ends() -> None:
    async with one_worker([("s__once",)], tool_seconds=1000.0) as (world, life):
        await world.create()
        await life.reached("in s__once")
        began = world.clock.boot()
        life.drain()
        await world.until(ONE, Phase.PENDING)
        assert 20 <= world.clock.boot() - began < 21, "the grace period"
        second = asyncio.ensure_future(world.life("second").run())
        status = await world.ended()
        assert (status["phase"], world.starts("s__once")) == ("Succeeded", 1), "a person said that it was done"
        second.cancel()


@virtual_time
async def test_a_drain_ends_also_while_nothing_can_be_written() -> None:
    world = World([("s__once",)])
    world.tool_seconds = 5.0
    async with world.controlled():
        await world.create()
        life = world.life()
        running = asyncio.ensure_future(life.run())
        await life.reached("in s__once")
        life.store.add(Refuse(OutcomeUnknownError("no route to the API server")))
        began = world.clock.boot()
        life.drain()
        await running
        assert world.clock.boot() - began < 30, "grace period, and some seconds for releasing"
        second = asyncio.ensure_future(world.life("second").run())
        assert (await world.ended())["phase"] == "Succeeded"
        assert world.starts("s__once") == 1
        second.cancel()


@pytest.mark.behaviour(7)
@virtual_time
async def test_a_worker_whose_lease_was_deleted_ends_without_a_word_and_starts_nothing() -> None:
    world = World([("s__once",)])
    async with world.controlled():
        await world.create()
        life = world.life()
        point = "before sending s__once"
        life.held[point] = asyncio.Event()
        running = asyncio.ensure_future(life.run())
        await life.reached(point)
        await world.memory.delete(LEASE, uid=(await world.memory.get(LEASE))["metadata"]["uid"])
        with pytest.raises(BaseExceptionGroup) as caught:
            await running
        assert caught.group_contains(FencedError)
        life.held[point].set()
        await world.clock.sleep(60)
        assert world.ledger == [] and await gone(world, LEASE)
