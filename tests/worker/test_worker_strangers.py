"""Nobody waits behind a stranger: what one task can't read or write holds up no other, and nobody is out of reach."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aura_operator.core.lifecycle import Phase
from aura_operator.errors import ForbiddenError
from aura_operator.store.commit import RIGHTS_SECONDS
from aura_operator.store.interface import add
from aura_operator.store.resources import AGENTS, CHECKPOINTS, SECRETS, Ref
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Call, Fault, Refuse, Slow
from tests.worker.world import ONE, Life, World, one_worker

ELSEWHERE = task_ref("elsewhere", "two")
NO = Refuse(ForbiddenError("rbac says no"))


def breaks(life: Life, fault: Fault, method: str, namespace: str, *resources: object) -> None:
    """From now on these requests of the worker meet the fault."""

    def matches(call: Call) -> bool:
        here = call.ref is not None and call.ref.namespace == namespace
        return here and call.method == method and (not resources or call.resource in resources)

    life.store.add(fault, matches)


def bad(number: int) -> Ref:
    return task_ref("n", f"bad-{number}")


@virtual_time
async def test_a_secret_that_may_not_be_read_holds_up_no_other_task_and_costs_no_slot() -> None:
    async with one_worker(slots=2) as (world, life):
        breaks(life, NO, "get", "n", SECRETS)
        await world.agent("n", secret="locked")
        for number in range(10):
            await world.create(bad(number))
        await world.clock.sleep(60)
        began = world.clock.boot()
        await world.create(ELSEWHERE)
        status = await world.ended(ELSEWHERE)
        assert status["phase"] == "Succeeded" and world.clock.boot() - began < 10
        waiting = [await world.status(bad(number)) for number in range(10)]
        assert {status["phase"] for status in waiting} <= {"Pending", "Running"}
        told = [status["summary"] for status in waiting if status["epoch"] and status["phase"] == "Pending"]
        assert told and all("Secret n/locked is refused" in summary and "rbac says no" in summary for summary in told)
        claims = sum(status["epoch"] for status in waiting)
        life.store.clear()
        for number in range(10):
            assert (await world.ended(bad(number)))["phase"] == "Succeeded"
    assert claims < 10, "each try cost a claim, so there are to be fewer and fewer"


@virtual_time
async def test_a_namespace_without_any_right_costs_no_slot() -> None:
    async with one_worker(slots=2) as (world, life):
        breaks(life, NO, "patch", "n")
        for number in range(10):
            await world.create(bad(number))
        await world.clock.sleep(1)
        await world.create(ELSEWHERE)
        began = world.clock.boot()
        assert (await world.ended(ELSEWHERE))["phase"] == "Succeeded"
        assert world.clock.boot() - began < 10
        life.store.clear()
        for number in range(10):
            assert (await world.ended(bad(number)))["phase"] == "Succeeded"


@virtual_time
async def test_an_agent_that_can_t_be_read_costs_no_slot() -> None:
    async with one_worker(slots=2) as (world, life):
        breaks(life, NO, "get", "n", AGENTS)
        for number in range(10):
            await world.create(bad(number))
        await world.clock.sleep(60)
        await world.create(ELSEWHERE)
        began = world.clock.boot()
        assert (await world.ended(ELSEWHERE))["phase"] == "Succeeded"
        assert world.clock.boot() - began < 10


# Out of nobody's reach


@asynccontextmanager
async def without_a_runner() -> AsyncIterator[tuple[World, Life]]:
    """A task that was claimed, and waits for a Secret that no answer comes for."""
    async with one_worker(slots=2) as (world, life):
        breaks(life, Slow(seconds=1e6), "get", "n", SECRETS)
        await world.agent("n", secret="slow")
        await world.create()
        await world.until(ONE, Phase.RUNNING)
        await world.clock.sleep(1)
        yield world, life


@pytest.mark.behaviour(25)
@virtual_time
async def test_a_cancel_reaches_a_task_that_has_no_runner_yet() -> None:
    async with without_a_runner() as (world, _):
        began = world.clock.boot()
        await world.memory.patch(ONE, [add("/spec/desired", "Cancel")])
        status = await world.ended()
        assert (status["phase"], status["reason"]) == ("Cancelled", "Cancelled")
        assert world.clock.boot() - began < 1


@virtual_time
async def test_a_deletion_frees_the_slot_of_a_task_that_has_no_runner_yet() -> None:
    async with without_a_runner() as (world, life):
        await world.memory.delete(ONE, uid=(await world.task()).uid)
        await world.clock.sleep(0.5)
        assert len(life.worker.slots) == 0


@pytest.mark.behaviour(6)
@virtual_time
async def test_a_drain_hands_a_task_over_that_has_no_runner_yet() -> None:
    async with without_a_runner() as (world, life):
        began = world.clock.boot()
        life.drain()
        status = await world.until(ONE, Phase.PENDING)
        assert world.clock.boot() - began < 1
        assert (status["recoveries"], status["summary"]) == (0, "handed over; wants a worker")


# Rights that are lost in the middle


@virtual_time
async def test_a_worker_whose_rights_are_gone_gives_the_slot_up_after_minutes_and_hands_back_when_they_return() -> None:
    async with one_worker([("s__read",)] * 3, slots=1) as (world, life):
        await world.create()
        await life.reached("in s__read")
        breaks(life, NO, "patch", "n")
        await world.create(ELSEWHERE)
        began = world.clock.boot()
        assert (await world.ended(ELSEWHERE))["phase"] == "Succeeded"
        assert RIGHTS_SECONDS <= world.clock.boot() - began < RIGHTS_SECONDS + 20
        assert (await world.status())["phase"] == "Running", "nobody could write anything else"
        life.store.clear()
        status = await world.ended()
        assert (status["phase"], status["recoveries"]) == ("Succeeded", 0)


@virtual_time
async def test_what_can_still_be_written_says_why_a_task_was_given_up() -> None:
    """The task's own object may be written; a part of its journal may not be created."""
    async with one_worker([("s__read",)] * 3, slots=1) as (world, life):
        world.text_bytes = 6000  # too much for the status
        breaks(life, NO, "create", "n", CHECKPOINTS)
        await world.create()
        await world.until(ONE, Phase.RUNNING)
        began = world.clock.boot()
        status = await world.until(ONE, Phase.PENDING)
        assert RIGHTS_SECONDS <= world.clock.boot() - began < RIGHTS_SECONDS + 20
        assert status["summary"].startswith("can't be run now: AuraCheckpoint n/one-")
        assert "is refused for 18" in status["summary"] and "rbac says no" in status["summary"]
        life.store.clear()
        assert (await world.ended())["phase"] == "Succeeded"
