"""Outages, other owners and the last write: no entry is lost or written twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aura_operator.core.journal import head_of
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.errors import FencedError, OutcomeUnknownError, UnavailableError
from aura_operator.store import task_writes
from aura_operator.store.interface import add
from aura_operator.store.task_fields import Wait
from aura_operator.store.task_writes import JournalDelta, OwnedTask
from aura_operator.store.view import task_view
from aura_operator.store.writes import Write
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Late, LoseAnswer, Refuse, Slow, calls
from aura_operator.testing.store_checks_writes import B, claim, orphan
from tests.worker.writing import PATCHES, Desk, line, writing


@pytest.mark.behaviour(11)
@pytest.mark.parametrize(
    "fault", [LoseAnswer(), Late(seconds=0.03), Refuse(OutcomeUnknownError("cut")), Refuse(UnavailableError("429"))]
)
def test_no_entry_is_lost_or_written_twice(fault: Any) -> None:
    @virtual_time
    async def run() -> None:
        desk = Desk()
        async with writing(desk) as writer:
            for nth in range(1, 60, 2):
                desk.store.add(fault, PATCHES, nth=nth)
                desk.store.add(fault, calls("create"), nth=nth)
            for number in range(20):
                writer.record(line(number, 1500))
                await writer.barrier()
            await desk.store.settle()
        assert (await desk.lines())[1:] == [line(number, 1500) for number in range(20)]

    run()


@pytest.mark.behaviour(7)
@virtual_time
async def test_a_writer_whose_task_has_another_epoch_is_fenced_and_writes_nothing() -> None:
    desk = Desk()

    async def lose() -> None:
        async with writing(desk) as writer:
            taken = await desk.ground.do(orphan(await desk.ground.view(desk.task.ref)))
            await desk.ground.do(claim(task_view(taken), B))
            writer.record(line(0))
            await writer.barrier()

    with pytest.raises(ExceptionGroup) as caught:
        await lose()
    assert caught.group_contains(FencedError)
    assert [text for text in await desk.lines() if '"k":"x"' in text] == []


@virtual_time
async def test_an_orphaned_task_fences_its_writer_even_before_anybody_claims_it() -> None:
    desk = Desk()

    async def lose() -> None:
        async with writing(desk) as writer:
            await desk.ground.do(orphan(await desk.ground.view(desk.task.ref)))
            writer.record(line(0))
            await writer.barrier()

    with pytest.raises(ExceptionGroup) as caught:
        await lose()
    assert caught.group_contains(FencedError)


@virtual_time
async def test_a_users_edit_neither_fences_nor_is_missed() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        await desk.memory.patch(desk.task.ref, [add("/spec/desired", "Cancel")])
        writer.record(line(0))
        await writer.barrier()
        assert desk.answers[-1]["spec"]["desired"] == "Cancel"


def parking(owned: OwnedTask, delta: JournalDelta) -> Write:
    wait = Wait(kind=WaitKind.TIMER, name="nap", until=1.0)
    return task_writes.park(owned, delta, waiting_for=[wait], fired=(), now=1.0, fields={})


@virtual_time
async def test_what_is_unwritten_goes_with_the_last_write() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        writer.record(line(0))
        manifest = await writer.close(parking)
        assert task_view(manifest).phase is Phase.WAITING
        await desk.clock.advance(1.0)
    assert len(desk.patches()) == 1
    assert (await desk.lines())[1:] == [line(0)]
    assert writer.durable.head == head_of([line(0)], desk.task.head)


@virtual_time
async def test_the_last_write_waits_for_the_one_under_way() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        desk.store.add(Slow(seconds=1.0), PATCHES, nth=1)
        writer.record(line(0))
        waiting = asyncio.ensure_future(writer.barrier())
        await desk.clock.advance(0.5)
        writer.record(line(1))
        await writer.close(parking)
        await waiting
    assert len(desk.patches()) == 2
    assert (await desk.lines())[1:] == [line(0), line(1)]


@pytest.mark.behaviour(9)
@virtual_time
async def test_an_outage_is_waited_out_and_everything_is_written_afterwards() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        desk.store.add(Refuse(UnavailableError("down")))
        for number in range(20):
            writer.record(line(number))
            await desk.clock.advance(3)
        assert writer.durable.next == 1
        desk.store.clear()
        await writer.barrier()
    assert (await desk.lines())[1:] == [line(number) for number in range(20)]
