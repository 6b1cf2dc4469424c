"""The write-behind journal: few requests, barriers that hold, sealing, and fencing; in memory and virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aura_operator.core.journal import INLINE_LIMIT_BYTES, head_of
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.errors import FencedError, NotFoundError, OutcomeUnknownError, UnavailableError
from aura_operator.store import task_writes
from aura_operator.store.interface import add
from aura_operator.store.journal_reads import read_journal
from aura_operator.store.overflow import payload_object
from aura_operator.store.resources import CHECKPOINTS, TASKS, Manifest
from aura_operator.store.task_fields import Wait
from aura_operator.store.task_writes import JournalDelta, OwnedTask, Write
from aura_operator.store.view import TaskView, task_view
from aura_operator.testing.clock import FakeClock, virtual_time
from aura_operator.testing.faulty import Call, FaultyStore, Late, LoseAnswer, Refuse, Slow, calls
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.store_checks_writes import A, B, Ground, claim, orphan, owned
from aura_operator.worker.writer import LINGER_SECONDS, JournalWriter

PATCHES = calls("patch", TASKS)


class Desk:
    """A task of A's with a writer on it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory, self.clock)
        self.ground = Ground(store=self.memory, user_store=self.memory, clock=self.clock, namespace="n")
        self.fields: dict[str, object] = {}
        self.answers: list[Manifest] = []
        self.extras_taken: list[int] = []

    async def open(self, task: TaskView | None = None) -> JournalWriter:
        self.task = task or await self.ground.claimed()
        segments, _ = await read_journal(self.memory, self.task, self.clock)
        self.writer = JournalWriter(
            self.store,
            self.clock,
            self.task.manifest,
            owned(self.task, A),
            segments=segments,
            fields=self._fields,
            answered=self.answers.append,
        )
        return self.writer

    def _fields(self) -> dict[str, object]:
        self.extras_taken.append(self.writer.recorded)
        return dict(self.fields)

    async def lines(self) -> list[str]:
        """The journal as a recovery would read it."""
        segments, inline = await read_journal(self.memory, await self.ground.view(self.task.ref), self.clock)
        return [line for part in segments for line in part.segment.lines] + list(inline)

    def patches(self) -> list[Call]:
        return [call for call in self.store.log if PATCHES(call)]


@asynccontextmanager
async def writing(desk: Desk, task: TaskView | None = None) -> AsyncIterator[JournalWriter]:
    writer = await desk.open(task)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(writer.run())
        yield writer
        work.cancel()


def line(number: int, size_bytes: int = 0) -> str:
    return f'{{"k":"x","n":{number},"pad":"{"p" * size_bytes}"}}'


@virtual_time
async def test_several_entries_travel_in_one_append() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        for number in range(5):
            writer.record(line(number))
        assert writer.durable.next == 1 and writer.recorded == 6
        await writer.barrier()
        assert len(desk.patches()) == 1
    assert (await desk.lines())[1:] == [line(number) for number in range(5)]


@virtual_time
async def test_an_entry_that_nobody_waits_for_lingers_for_company_and_is_written_all_the_same() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        began = desk.clock.boot()
        writer.record(line(0))
        await desk.clock.advance(LINGER_SECONDS / 2)
        assert desk.patches() == []
        writer.record(line(1))
        await desk.clock.advance(LINGER_SECONDS)
        assert writer.durable.next == 3 and len(desk.patches()) == 1
        assert desk.clock.boot() - began < 3 * LINGER_SECONDS


@virtual_time
async def test_a_barrier_does_not_linger_and_waits_for_what_was_recorded_before_it() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        began = desk.clock.boot()
        position = writer.record(line(0))
        await writer.barrier()
        assert desk.clock.boot() == began, "no time passed"
        assert writer.durable.next == position
        await writer.barrier()
        await writer.barrier(1)
        assert len(desk.patches()) == 1, "what is written needs no request"


@virtual_time
async def test_entries_recorded_during_a_write_go_with_the_next_one() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        desk.store.add(Slow(seconds=1.0), PATCHES, nth=1)
        writer.record(line(0))
        first = asyncio.ensure_future(writer.barrier())
        await desk.clock.advance(0.5)
        writer.record(line(1))
        second = asyncio.ensure_future(writer.barrier())
        third = asyncio.ensure_future(writer.barrier(2))
        await desk.clock.advance(0.4)
        assert not first.done() and not second.done()
        await asyncio.gather(first, third)
        await second
        assert len(desk.patches()) == 2
    assert (await desk.lines())[1:] == [line(0), line(1)]


@virtual_time
async def test_a_barrier_that_is_given_up_holds_nobody_else_up() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        desk.store.add(Slow(seconds=1.0), PATCHES, nth=1)
        writer.record(line(0))
        given_up = asyncio.ensure_future(writer.barrier())
        kept = asyncio.ensure_future(writer.barrier())
        await desk.clock.advance(0.5)
        given_up.cancel()
        await kept
    assert (await desk.lines())[1:] == [line(0)]


@virtual_time
async def test_what_is_said_beside_the_journal_is_of_the_moment_of_its_lines_and_sent_only_when_it_changed() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        desk.fields = {"summary": "one", "unresolved": []}
        desk.store.add(Slow(seconds=1.0), PATCHES, nth=1)
        writer.record(line(0))
        waiting = asyncio.ensure_future(writer.barrier())
        await desk.clock.advance(0.5)
        desk.fields = {"summary": "two", "unresolved": []}
        writer.record(line(1))
        await waiting
        await writer.barrier()
    told = [(answer["status"]["summary"], answer["status"]["journal"]["next"]) for answer in desk.answers]
    assert told == [("one", 2), ("two", 3)]
    paths = [[op.path for op in call.body] for call in desk.patches()]
    assert "/status/unresolved" in paths[0] and "/status/unresolved" not in paths[1]
    assert desk.extras_taken == [2, 3], "taken together with the lines"


@virtual_time
async def test_objects_are_there_before_the_line_that_names_them() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        _, manifest = payload_object(desk.task.manifest, "large\n" * 2000)
        desk.store.add(Refuse(UnavailableError("busy")), calls("create"), nth=1)
        writer.record(line(0), ((CHECKPOINTS, manifest),))
        await writer.barrier()
    writes = [call.method for call in desk.store.log if call.writes]
    assert writes == ["create", "create", "patch"]


# Sealing


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


# Trouble


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


# The end of an ownership


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


@virtual_time
async def test_a_barrier_for_what_is_on_its_way_makes_no_write_of_what_came_since() -> None:
    desk = Desk()
    async with writing(desk) as writer:
        desk.store.add(Slow(seconds=1.0), PATCHES, nth=1)
        position = writer.record(line(0))
        await desk.clock.advance(0.5)
        writer.record(line(1), within_seconds=60.0)
        await writer.barrier(position)
        await desk.clock.advance(10.0)
        assert len(desk.patches()) == 1 and writer.durable.next == position
        await writer.barrier()
        assert len(desk.patches()) == 2
    assert (await desk.lines())[1:] == [line(0), line(1)]
