"""A decision wakes a task: claim, decision and intent are one write; what stands in its way delays the call only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aura_operator.core.entries import Claimed, Decided, Entry, Intent
from aura_operator.core.lifecycle import Phase
from aura_operator.errors import OutcomeUnknownError, StoreError, ToolServerError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.interface import add
from aura_operator.store.journal_reads import read_entries
from aura_operator.store.resources import APPROVALS
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, calls
from tests.worker.fakes import LedgerTools
from tests.worker.world import NAMESPACE, ONE, Life, World, one_worker

CLAIM = "before patch auratasks/one"


@asynccontextmanager
async def waiting_for(*tools: str) -> AsyncIterator[tuple[World, Life]]:
    """A task that waits for a decision about each of these calls of one turn."""
    async with one_worker([tools]) as (world, life):
        world.answering = False
        await world.create()
        await world.until(ONE, Phase.WAITING)
        yield world, life


async def decide(world: World, approval: str = "one-1", *, approved: bool = True) -> None:
    await world.memory.patch(approval_ref(NAMESPACE, approval), [add("/spec/decision", {"approved": approved})])


async def entries(world: World) -> list[Entry]:
    return await read_entries(world.memory, await world.task(), world.clock)


def names(some: list[Entry]) -> list[str]:
    return [type(entry).__name__ for entry in some]


@pytest.mark.behaviour(16)
@virtual_time
async def test_from_the_decision_to_the_call_the_worker_writes_once() -> None:
    async with waiting_for("s__approved") as (world, life):
        passed = len(life.points)
        await decide(world)
        await life.reached("in s__approved")
        before_the_call = life.points[passed : life.points.index("in s__approved")]
        assert before_the_call.count(CLAIM) == 1
        status = await world.status()
        assert [effect["tool"] for effect in status["unresolved"]] == ["s__approved"], "and the effect was told in it"
        assert names(await entries(world))[-3:] == ["Claimed", "Decided", "Intent"]
        claim, decided, intent = (await entries(world))[-3:]
        assert isinstance(claim, Claimed) and isinstance(decided, Decided) and isinstance(intent, Intent)
        assert (claim.epoch, decided.call, intent.call) == (2, 1, 1)
        assert (await world.ended())["phase"] == "Succeeded" and world.starts("s__approved") == 1


@pytest.mark.behaviour(16)
@virtual_time
async def test_two_calls_that_were_approved_before_the_task_woke_begin_together() -> None:
    async with waiting_for("s__approved", "s__approved") as (world, life):
        life.held[CLAIM] = asyncio.Event()
        await decide(world, "one-1")
        await decide(world, "one-2")
        await life.reached(CLAIM)
        life.held.pop(CLAIM).set()
        assert (await world.ended())["phase"] == "Succeeded" and world.starts("s__approved") == 2


@virtual_time
async def test_a_denied_call_is_not_begun() -> None:
    async with waiting_for("s__approved") as (world, _):
        await decide(world, approved=False)
        assert (await world.ended())["phase"] == "Succeeded" and world.starts("s__approved") == 0
        assert "Intent" not in names(await entries(world))


@pytest.mark.parametrize("error", [OutcomeUnknownError("cut"), None], ids=["cut", "slow"])
@virtual_time
async def test_an_approval_that_can_not_be_read_before_the_claim_is_read_after_it(error: StoreError | None) -> None:
    async with waiting_for("s__approved") as (world, life):
        approval = f"before get {APPROVALS.plural}/one"
        if error is None:
            life.held[approval] = asyncio.Event()
        else:
            life.store.add(Refuse(error), calls("get", APPROVALS))
        await decide(world)
        await life.reached(approval)
        await world.clock.sleep(2)
        assert (await world.task()).phase is Phase.RUNNING, "claimed all the same"
        if error is None:
            life.held.pop(approval).set()
        life.store.clear()
        assert (await world.ended())["phase"] == "Succeeded" and world.starts("s__approved") == 1


@virtual_time
async def test_tools_that_can_not_be_listed_before_the_claim_are_listed_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = LedgerTools.fresh
    asked = 0

    async def fresh(tools: LedgerTools, tool: str) -> object:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ToolServerError("away")
        return await listed(tools, tool)

    monkeypatch.setattr(LedgerTools, "fresh", fresh)
    async with waiting_for("s__approved") as (world, _):
        await decide(world)
        assert (await world.ended())["phase"] == "Succeeded"
        assert world.starts("s__approved") == 1 and asked == 2


@pytest.mark.behaviour(2)
@virtual_time
async def test_an_owner_that_dies_between_its_claim_and_the_call_leaves_a_doubt_and_no_second_call() -> None:
    async with waiting_for("s__approved") as (world, life):
        after = "after patch auratasks/one"
        life.held[after] = asyncio.Event()
        passed = len(life.points)
        await decide(world)
        async with asyncio.timeout(60):
            while after not in life.points[passed:]:
                await world.clock.sleep(0.01)
        life.kill()
        world.answering, world.choice = True, "Done"
        other = world.life("other")
        async with asyncio.TaskGroup() as group:
            running = group.create_task(other.run())
            status = await world.ended()
            running.cancel()
        assert status["phase"] == "Succeeded" and world.starts("s__approved") == 0
        assert "Decided" in names(await entries(world))[-4:], "a person said what became of it"


@pytest.mark.behaviour(8)
@virtual_time
async def test_a_drain_while_the_claim_is_under_way_lets_the_call_come_to_its_end() -> None:
    async with waiting_for("s__approved") as (world, life):
        life.held[CLAIM] = asyncio.Event()
        await decide(world)
        await life.reached(CLAIM)
        await world.clock.sleep(1)
        life.drain()
        await world.clock.sleep(1)
        life.held.pop(CLAIM).set()
        await world.until(ONE, Phase.RUNNING)
        status = await world.until(ONE, Phase.PENDING)
        assert world.starts("s__approved") == 1 and not status.get("unresolved")
        assert status["lastEnd"]["proof"] == "Released"


@virtual_time
async def test_a_cancel_while_the_claim_is_under_way_stops_it() -> None:
    async with waiting_for("s__approved") as (world, life):
        life.held[CLAIM] = asyncio.Event()
        await decide(world)
        await life.reached(CLAIM)
        await world.memory.patch(ONE, [add("/spec/desired", "Cancel")])
        life.held.pop(CLAIM).set()
        assert (await world.ended())["phase"] == "Cancelled" and world.starts("s__approved") == 0


@virtual_time
async def test_a_cancel_before_an_opened_call_is_sent_ends_the_task_with_nothing_unresolved() -> None:
    async with waiting_for("s__approved") as (world, life):
        after = "after patch auratasks/one"
        life.held[after] = asyncio.Event()
        passed = len(life.points)
        await decide(world)
        async with asyncio.timeout(60):
            while after not in life.points[passed:]:
                await world.clock.sleep(0.01)
        await world.memory.patch(ONE, [add("/spec/desired", "Cancel")])
        await world.clock.sleep(1)
        life.held.pop(after).set()
        status = await world.ended()
        assert status["phase"] == "Cancelled" and world.starts("s__approved") == 0
        assert not status.get("unresolved"), "it was certainly not sent"
