"""The journal is written behind: in as few requests as possible, and not before or after what waits for it."""

from __future__ import annotations

import asyncio

from aura_operator.errors import UnavailableError
from aura_operator.store.overflow import payload_object
from aura_operator.store.resources import CHECKPOINTS
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, Slow, calls
from aura_operator.worker.task.writer import LINGER_SECONDS
from tests.worker.writing import PATCHES, Desk, line, writing


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
