"""When objects are due, in virtual time."""

from __future__ import annotations

import asyncio

from aura_operator.controller.schedule import Schedule
from aura_operator.store.resources import Ref
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import FakeClock, virtual_time


class Looks:
    """What became due, and how long after the start."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.start = clock.now()
        self.seen: list[tuple[str, float]] = []
        self.schedule = Schedule(clock)

    def at(self, name: str, seconds: float | None) -> None:
        self.schedule.at(task_ref("n", name), None if seconds is None else self.start + seconds)

    def look(self, ref: Ref) -> None:
        self.seen.append((ref.name, round(self.clock.now() - self.start, 3)))


@virtual_time
async def test_each_is_looked_at_in_its_time_and_order() -> None:
    clock = FakeClock()
    looks = Looks(clock)
    looks.at("late", 500.0)
    looks.at("early", 5.0)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(looks.schedule.run(looks.look))
        await clock.advance(1)
        looks.at("earlier", 2.0)  # while it waits for another
        looks.at("past", -10.0)
        await clock.advance(600)
        work.cancel()
    assert looks.seen == [("past", 1.0), ("earlier", 2.0), ("early", 5.0), ("late", 500.0)]


@virtual_time
async def test_the_latest_word_counts() -> None:
    clock = FakeClock()
    looks = Looks(clock)
    for name, times in {
        "moved up": (50.0, 5.0),
        "put off": (5.0, 50.0),
        "dropped": (5.0, None),
        "back and forth": (5.0, 50.0, 5.0),
        "dropped and back": (5.0, None, 7.0),
    }.items():
        for time in times:
            looks.at(name, time)
    looks.at("never known", None)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(looks.schedule.run(looks.look))
        await clock.advance(100)
        work.cancel()
    assert sorted(looks.seen) == [
        ("back and forth", 5.0),
        ("dropped and back", 7.0),
        ("moved up", 5.0),
        ("put off", 50.0),
    ]


@virtual_time
async def test_an_object_can_be_put_back_when_it_is_looked_at() -> None:
    clock = FakeClock()
    looks = Looks(clock)

    def look(ref: Ref) -> None:
        looks.look(ref)
        if len(looks.seen) < 3:
            looks.at(ref.name, len(looks.seen) * 100.0)

    looks.at("again", 1.0)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(looks.schedule.run(look))
        await clock.advance(1000)
        work.cancel()
    assert [at for _, at in looks.seen] == [1.0, 100.0, 200.0]
