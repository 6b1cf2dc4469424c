"""One worker's part in a task's life: cut off and overtaken, drained, cancelled, paused, steered; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from aura_operator.core.lifecycle import Phase
from aura_operator.errors import OutcomeUnknownError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.interface import add
from aura_operator.store.journal_reads import read_journal
from aura_operator.store.resources import APPROVALS, new
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse
from tests.worker.world import NAMESPACE, ONE, Life, Turn, World


@asynccontextmanager
async def at_work(turns: Sequence[Turn], *, tool_seconds: float = 1.0) -> AsyncIterator[tuple[World, Life]]:
    """A world with a controller, a task, and one worker on it."""
    world = World(turns)
    world.tool_seconds = tool_seconds
    await world.create()
    async with world.controlled(), asyncio.TaskGroup() as group:
        life = world.life("first")
        running = group.create_task(life.run())
        yield world, life
        running.cancel()


async def phase(world: World, wanted: Phase) -> None:
    async with asyncio.timeout(600):
        while (await world.task()).phase is not wanted:
            await world.clock.sleep(0.05)


async def kinds(world: World) -> list[str]:
    _, lines = await read_journal(world.memory, await world.task(), world.clock)
    return [line.split('"k":"')[1].split('"')[0] for line in lines]


def cut_off(life: Life) -> None:
    life.store.add(Refuse(OutcomeUnknownError("no route to the API server")))


@pytest.mark.behaviour(7)
@virtual_time
async def test_a_worker_that_was_cut_off_and_overtaken_writes_nothing_and_starts_nothing() -> None:
    async with at_work([("s__idempotent",), ("s__once",)], tool_seconds=40.0) as (world, first):
        await first.reached("in s__idempotent")
        cut_off(first)
        second = world.life("second")
        working = asyncio.ensure_future(second.run())
        await second.reached("in s__idempotent")
        assert [line.epoch for line in world.ledger] == [1, 2]
        first.store.clear()  # its call comes back meanwhile, and it offers the result
        status = await world.ended()
        assert status["phase"] == "Succeeded" and status["epoch"] == 2
        working.cancel()
    assert [(line.tool, line.life) for line in world.ledger] == [
        ("s__idempotent", 1),
        ("s__idempotent", 2),
        ("s__once", 2),
    ]
    assert first.lease.lapses == 1


@pytest.mark.behaviour(7)
@virtual_time
async def test_an_intent_alone_is_no_permission_once_the_lease_has_lapsed() -> None:
    """Its intent is written, then the process stands still right before the call, and the task is taken over."""
    async with at_work([("s__once",)]) as (world, first):
        point = "before sending s__once"
        first.held[point] = asyncio.Event()
        await first.reached(point)
        cut_off(first)
        second = world.life("second")
        working = asyncio.ensure_future(second.run())
        status = await world.ended()
        assert status["phase"] == "Succeeded"
        first.store.clear()
        first.held[point].set()
        await world.clock.advance(60)
        assert world.ledger == [], "a person said that it was done; nobody made it after that"
        working.cancel()


@pytest.mark.behaviour(9)
@virtual_time
async def test_a_worker_that_was_cut_off_and_not_overtaken_goes_on() -> None:
    async with at_work([("s__idempotent",), ("s__once",)], tool_seconds=5.0) as (world, first):
        await first.reached("in s__idempotent")
        cut_off(first)
        await world.clock.advance(12)  # past its own deadline, before anybody may take the task
        assert not first.lease.may_start() and world.starts("s__once") == 0
        first.store.clear()
        status = await world.ended()
        assert (status["phase"], status["epoch"], status["recoveries"]) == ("Succeeded", 1, 0)
    assert [line.tool for line in world.ledger] == ["s__idempotent", "s__once"]


@pytest.mark.behaviour(6)
@pytest.mark.parametrize("point", ["in s__once", "in s__read"])
def test_a_drained_worker_hands_over_without_losing_an_effect(point: str) -> None:
    @virtual_time
    async def run() -> None:
        tool = point.removeprefix("in ")
        async with at_work([(tool,)], tool_seconds=20.0) as (world, first):
            await first.reached(point)
            began = world.clock.boot()
            first.drain()
            await phase(world, Phase.PENDING)
            waited = world.clock.boot() - began
            assert waited >= 19 if tool == "s__once" else waited < 0.2, "effects are awaited, plain reads given up"
            second = world.life("second")
            working = asyncio.ensure_future(second.run())
            status = await world.ended()
            assert (status["phase"], status["recoveries"], status["unresolved"]) == ("Succeeded", 0, [])
            assert world.starts("s__once") <= 1
            working.cancel()

    run()


@pytest.mark.behaviour(25)
@virtual_time
async def test_a_cancel_stops_a_running_call_and_what_came_of_it_is_recorded() -> None:
    async with at_work([("s__once",), ("s__once",)], tool_seconds=100.0) as (world, first):
        await first.reached("in s__once")
        began = world.clock.boot()
        await world.memory.patch(ONE, [add("/spec/desired", "Cancel")])
        status = await world.ended()
        assert world.clock.boot() - began < 1
    assert (status["phase"], world.starts("s__once")) == ("Cancelled", 1)
    assert [effect["tool"] for effect in status["unresolved"]] == ["s__once"], "it may have happened: that is said"
    assert (await kinds(world))[-2:] == ["result", "finished"]


@pytest.mark.behaviour(25)
@virtual_time
async def test_a_parked_task_is_cancelled_too_and_its_approval_withdrawn() -> None:
    async with at_work([("s__approved",)]) as (world, _):
        world.answering = False
        await phase(world, Phase.WAITING)
        await world.memory.patch(ONE, [add("/spec/desired", "Cancel")])
        status = await world.ended()
        await world.clock.advance(5)
        approval = await world.memory.get(approval_ref(NAMESPACE, "one-1"))
    assert (status["phase"], world.ledger) == ("Cancelled", [])
    assert approval["status"]["phase"] == "Withdrawn"


@pytest.mark.behaviour(26)
@virtual_time
async def test_a_pause_stops_before_the_next_step_and_run_goes_on() -> None:
    async with at_work([("s__once",), ("s__once",)], tool_seconds=10.0) as (world, first):
        await first.reached("in s__once")
        await world.memory.patch(ONE, [add("/spec/desired", "Pause")])
        await phase(world, Phase.WAITING)
        await world.clock.advance(600)
        assert world.starts("s__once") == 1, "the running call came to its end, the next wasn't started"
        assert (await world.status()).get("owner") is None
        await world.memory.patch(ONE, [add("/spec/desired", "Run")])
        status = await world.ended()
    assert (status["phase"], world.starts("s__once")) == ("Succeeded", 2)


@pytest.mark.behaviour(26)
@virtual_time
async def test_a_message_interrupts_a_sleep_and_is_seen_once() -> None:
    async with at_work([("sleep",)]) as (world, _):
        await phase(world, Phase.WAITING)
        began = world.clock.boot()
        await world.memory.patch(ONE, [add("/spec/steering/-", {"id": "1", "text": "hurry", "by": "alice"})])
        status = await world.ended()
        assert world.clock.boot() - began < 10
    assert (status["phase"], status["steering"]) == ("Succeeded", {"consumed": 1})
    assert (await kinds(world)).count("steered") == 1


@pytest.mark.behaviour(22)
@virtual_time
async def test_calls_side_by_side_don_t_wait_for_the_one_that_needs_approval() -> None:
    async with at_work([("s__read", "s__approved", "s__once")]) as (world, _):
        world.answering = False
        await phase(world, Phase.WAITING)
        assert (world.starts("s__read"), world.starts("s__once"), world.starts("s__approved")) == (1, 1, 0)
        await world.memory.patch(
            approval_ref(NAMESPACE, "one-2"), [add("/spec/decision", {"approved": True, "reason": "ok"})]
        )
        status = await world.ended()
    assert (status["phase"], world.starts("s__approved")) == ("Succeeded", 1)


@pytest.mark.behaviour(21)
@virtual_time
async def test_a_denied_call_is_never_made() -> None:
    async with at_work([("s__approved",)]) as (world, _):
        world.answering = False
        await phase(world, Phase.WAITING)
        await world.memory.patch(
            approval_ref(NAMESPACE, "one-1"), [add("/spec/decision", {"approved": False, "reason": "not now"})]
        )
        status = await world.ended()
    assert (status["phase"], world.ledger) == ("Succeeded", [])


@pytest.mark.behaviour(20)
@virtual_time
async def test_an_approval_that_nobody_answers_ends_by_itself_and_nothing_is_made() -> None:
    async with at_work([("s__approved",)]) as (world, _):
        world.answering = False
        status = await world.ended()
        approval = await world.memory.get(approval_ref(NAMESPACE, "one-1"))
    assert (status["phase"], world.ledger, approval["status"]["phase"]) == ("Succeeded", [], "Expired")


@virtual_time
async def test_an_approval_of_another_run_that_stays_in_the_way_ends_the_task_and_frees_the_slot() -> None:
    async with at_work([("s__read",), ("s__approved",)]) as (world, _):
        world.answering = False
        world.tool_seconds = 5.0
        await world.clock.sleep(1.0)
        request = {"task": "one", "run": "of-old", "call": 2, "kind": "ToolCall", "tool": "s__approved"}
        terms = {"approvers": {"users": ["bob"]}, "requester": "bob", "expiresAt": "2099-01-01T00:00:00Z"}
        left = new(APPROVALS, NAMESPACE, "one-2", spec={"request": request, **terms})
        await world.memory.create(APPROVALS, left)
        status = await world.ended()
    assert (status["phase"], status["reason"], world.starts("s__approved")) == ("Failed", "ApprovalNameTaken", 0)
