"""What is too much for a status is sealed, and a new owner goes on sealing."""

from __future__ import annotations

import pytest

from aura_operator.core.journal import INLINE_LIMIT_BYTES
from aura_operator.errors import NotFoundError
from aura_operator.store.journal_reads import read_journal
from aura_operator.store.view import task_view
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Call
from aura_operator.testing.store_checks_writes import A, claim, orphan
from tests.worker.writing import Desk, line, writing


@pytest.mark.behaviour(30)
@virtual_time
async def test_entries_over_the_limit_are_sealed_and_the_status_stays_small() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        for number in range(60):
            writer.record(line(number, 1000))
            await writer.barrier()
            status = (await desk.ground.read(desk.task.ref))["status"]
            assert sum(map(len, status["journal"]["entries"])) <= INLINE_LIMIT_BYTES
        assert (await desk.lines())[1:] == [line(number, 1000) for number in range(60)]
        segments, _ = await read_journal(desk.memory, await desk.ground.view(desk.task.ref), desk.clock)
        names = [part.name for part in segments]
        assert len(names) == 7
        assert list(segments[-1].segment.previous) == names[:-1]


@virtual_time
async def test_a_new_owner_goes_on_sealing_where_the_last_one_stopped() -> None:
    desk = Desk()
    task = await desk.ground.claimed()
    for number in range(3):
        async with writing(desk, task) as writer:
            for index in range(10):
                writer.record(line(100 * number + index, 2000))
                await writer.barrier()
        task = task_view(
            await desk.ground.do(claim(task_view(await desk.ground.do(orphan(await desk.ground.view(task.ref)))), A))
        )
    kept = [text for text in await desk.lines() if '"k":"x"' in text]
    assert kept == [line(100 * number + index, 2000) for number in range(3) for index in range(10)]


@virtual_time
async def test_an_owner_that_died_between_sealing_and_the_write_leaves_nothing_behind_that_matters() -> None:
    desk = Desk()

    async def die(call: Call) -> None:
        if call.method == "create":
            raise NotFoundError("the process is gone")

    async def seal() -> None:
        async with writing(desk) as writer:
            desk.store.after = die
            writer.record(line(0, 9000))
            await writer.barrier()

    with pytest.raises(ExceptionGroup):
        await seal()
    desk.store.after = None
    assert len(await desk.lines()) == 1
    view = await desk.ground.view(desk.task.ref)
    again = task_view(await desk.ground.do(claim(task_view(await desk.ground.do(orphan(view))), A)))
    async with writing(desk, again) as writer:
        writer.record(line(1, 9000))
        await writer.barrier()
    assert (await desk.lines())[2:] == [line(1, 9000)]
