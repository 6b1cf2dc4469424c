"""In which order objects are looked at, and that nobody waits behind a stranger; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aura_operator.controller.work import AT_ONCE, KEPT, Work
from aura_operator.store.resources import Ref
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import FakeClock, virtual_time


class Desk:
    """Looks at what is put, each for `seconds`; in the namespace `without-rights` a look never ends."""

    def __init__(self, seconds: float = 0.01) -> None:
        self.clock = FakeClock()
        self.seconds = seconds
        self.work = Work(self._look)
        self.begun: list[tuple[str, Any]] = []
        self.running: list[Ref] = []
        self.most = 0

    async def _look(self, ref: Ref, seen: Any) -> None:
        self.begun.append((ref.name, seen))
        self.running.append(ref)
        self.most = max(self.most, len(self.running))
        if ref.namespace == "without-rights":
            await asyncio.Event().wait()
        await self.clock.sleep(self.seconds)
        self.running.remove(ref)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self.work.run())
            yield
            work.cancel()


@virtual_time
async def test_a_thousand_are_looked_at_some_at_a_time() -> None:
    desk = Desk()
    for number in range(1000):
        desk.work.later(task_ref("n", f"t{number}"))
    async with desk.working():
        await desk.clock.advance(10)
    assert len(desk.begun) == 1000 and desk.most == AT_ONCE


@virtual_time
async def test_a_namespace_where_looks_never_end_holds_up_no_other() -> None:
    desk = Desk()
    for number in range(2 * AT_ONCE):
        desk.work.soon(task_ref("without-rights", f"t{number}"))
    desk.work.later(task_ref("n", "well"))
    async with desk.working():
        await desk.clock.advance(1)
    assert ("well", None) in desk.begun


@virtual_time
async def test_the_urgent_go_before_all_that_can_wait() -> None:
    desk = Desk()
    async with desk.working():
        await desk.clock.advance(0)
        for number in range(5 * AT_ONCE):
            desk.work.later(task_ref("n", f"t{number}"))
        desk.work.soon(task_ref("n", "urgent"))
        desk.work.soon(task_ref("n", f"t{5 * AT_ONCE - 1}"))  # had waited among the others
        await desk.clock.advance(10)
    names = [name for name, _ in desk.begun]
    assert names[AT_ONCE : AT_ONCE + 2] == ["urgent", f"t{5 * AT_ONCE - 1}"]
    assert len(names) == 5 * AT_ONCE + 1, "each once"


@virtual_time
async def test_an_object_is_never_looked_at_twice_at_a_time_and_the_last_sight_of_it_counts() -> None:
    desk = Desk(seconds=1.0)
    one = task_ref("n", "one")
    async with desk.working():
        desk.work.soon(one, "first")
        await desk.clock.advance(0.1)
        desk.work.soon(one, "second")
        desk.work.later(one, "third")
        await desk.clock.advance(5)
    assert desk.begun == [("one", "first"), ("one", "third")] and desk.most == 1


@virtual_time
async def test_of_very_many_only_the_names_are_kept() -> None:
    """Ten thousand objects of thirty kilobytes must not wait in memory behind a namespace that is stuck."""
    desk = Desk()
    for number in range(KEPT + 10):
        desk.work.later(task_ref("n", f"t{number}"), "seen")
    async with desk.working():
        await desk.clock.advance(10)
    assert [seen for _, seen in desk.begun] == ["seen"] * KEPT + [None] * 10


@virtual_time
async def test_what_comes_while_it_ends_hurts_nobody() -> None:
    desk = Desk()
    async with desk.working():
        await desk.clock.advance(0)
    desk.work.soon(task_ref("n", "late"))
    assert desk.begun == []


@pytest.mark.parametrize(
    ("puts", "place"),
    [
        ((Work.later,), 2 * AT_ONCE + 1),  # after those that came before it
        ((Work.soon,), AT_ONCE),
        ((Work.soon, Work.later), AT_ONCE),
    ],
    ids=["it can wait", "it is urgent", "it is urgent, and came again as what can wait"],
)
@virtual_time
async def test_what_comes_while_its_object_is_looked_at_has_its_own_place(
    puts: tuple[Callable[[Work, Ref, Any], None], ...], place: int
) -> None:
    desk = Desk(seconds=1.0)
    twice = task_ref("n", "twice")
    async with desk.working():
        desk.work.later(twice, "first")
        await desk.clock.advance(0.1)
        for number in range(2 * AT_ONCE):
            desk.work.later(task_ref("n", f"t{number}"))
        for put in puts:
            put(desk.work, twice, "again")
        await desk.clock.advance(10)
    assert desk.begun.index(("twice", "again")) == place
