"""What wakes a parked task, and when the controller looks at it again. Tables, and the schedule in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from aura_operator.controller.schedule import AT_ONCE, Schedule
from aura_operator.controller.wakes import Gathered, look_again_at, wake_for
from aura_operator.core.absorb import SteeringText
from aura_operator.core.lifecycle import Desired, Phase, WaitKind
from aura_operator.store.resources import Ref
from aura_operator.store.task_fields import Wait
from aura_operator.store.view import TaskView, task_ref, task_view
from aura_operator.testing.clock import FakeClock, virtual_time

NOW = 1000.0
ASKED = Wait(kind=WaitKind.APPROVAL, name="one-1", until=NOW + 600)
ASKED_TOO = Wait(kind=WaitKind.APPROVAL, name="one-2", until=NOW + 600)
NAP = Wait(kind=WaitKind.TIMER, name="sleep-3", until=NOW + 60)
OVER = Wait(kind=WaitKind.TIMER, name="sleep-4", until=NOW)
PAUSED = Wait(kind=WaitKind.PAUSE, name="pause", until=None)
WORD = (SteeringText(text="hurry", by="alice"),)


def parked(*waits: Wait, **fields: object) -> TaskView:
    manifest = {
        "metadata": {"name": "one", "namespace": "n", "uid": "u", "resourceVersion": "1"},
        "spec": {"agentRef": {"name": "sre"}, "input": "go"},
        "status": {"phase": "Waiting", "epoch": 1},
    }
    return replace(task_view(manifest), waiting_for=waits, **fields)  # type: ignore[arg-type]


def woken(task: TaskView, approvals: dict[str, str | None] | None = None) -> str | None:
    wake = wake_for(Gathered(task=task, approvals=approvals or {}, now=NOW))
    return wake.name if wake else None


@pytest.mark.parametrize(
    ("task", "approvals", "name"),
    [
        (parked(ASKED), {"one-1": "Pending"}, None),
        (parked(ASKED), {"one-1": "Approved"}, "one-1"),
        (parked(ASKED), {"one-1": "Denied"}, "one-1"),
        (parked(ASKED), {"one-1": "Expired"}, "one-1"),
        (parked(ASKED), {"one-1": None}, "one-1"),  # deleted: its owner asks again
        (parked(ASKED, ASKED_TOO), {"one-1": "Pending", "one-2": "Approved"}, "one-2"),
        (parked(ASKED), {"one-9": "Approved"}, None),
        (parked(ASKED, fired=("one-1",)), {"one-1": "Approved"}, None),
        (parked(NAP), {}, None),
        (parked(OVER), {}, "sleep-4"),
        (parked(NAP, OVER), {}, "sleep-4"),
        (parked(ASKED, OVER), {"one-1": "Pending"}, "sleep-4"),
        (parked(PAUSED), {}, "pause"),
        (parked(PAUSED, desired=Desired.PAUSE), {}, None),
        (parked(PAUSED, desired=Desired.CANCEL), {}, "pause"),
        (parked(ASKED, desired=Desired.CANCEL), {"one-1": "Pending"}, "one-1"),
        (parked(ASKED, desired=Desired.CANCEL, fired=("one-1",)), {}, None),
        (parked(NAP, active_deadline_seconds=10.0, started_at=NOW - 10), {}, "sleep-3"),
        (parked(NAP, active_deadline_seconds=10.0, started_at=NOW - 9), {}, None),
        (parked(NAP, active_deadline_seconds=10.0), {}, None),
        (parked(NAP, steering=WORD), {}, "sleep-3"),
        (parked(ASKED, steering=WORD), {"one-1": "Pending"}, None),  # a message withdraws no approval
        (parked(ASKED, NAP, steering=WORD), {"one-1": "Pending"}, "sleep-3"),
        (parked(OVER, phase=Phase.PENDING), {}, None),
        (parked(OVER, phase=Phase.RUNNING), {}, None),
        (parked(), {}, None),
    ],
)
def test_what_wakes_a_parked_task(task: TaskView, approvals: dict[str, str | None], name: str | None) -> None:
    assert woken(task, approvals) == name


def test_a_message_that_the_model_has_seen_wakes_nobody() -> None:
    assert woken(parked(NAP, steering=WORD, steering_consumed=1)) is None


def test_the_summary_says_why() -> None:
    gathered = Gathered(task=parked(ASKED), approvals={"one-1": "Approved"}, now=NOW)
    wake = wake_for(gathered)
    assert wake is not None and wake.why == "woken: one-1 was decided"


@pytest.mark.parametrize(
    ("task", "at"),
    [
        (parked(ASKED), None),
        (parked(NAP), NOW + 60),
        (parked(NAP, OVER), NOW),
        (parked(PAUSED), None),
        (parked(PAUSED, active_deadline_seconds=30.0, started_at=NOW), NOW + 30),
        (parked(NAP, active_deadline_seconds=30.0, started_at=NOW), NOW + 30),
    ],
)
def test_when_it_is_looked_at_again(task: TaskView, at: float | None) -> None:
    assert look_again_at(task) == at


# The schedule


class Looks:
    """What was looked at, and how long after the start."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.start = clock.now()
        self.seen: list[tuple[str, float]] = []
        self.schedule = Schedule(clock)

    def at(self, name: str, seconds: float | None) -> None:
        self.schedule.at(task_ref("n", name), None if seconds is None else self.start + seconds)

    async def look(self, ref: Ref) -> None:
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
async def test_a_thousand_that_are_due_at_once_are_looked_at_some_at_a_time() -> None:
    clock = FakeClock()
    looks = Looks(clock)
    at_once = most = 0

    async def look(ref: Ref) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await clock.sleep(0.01)
        at_once -= 1
        await looks.look(ref)

    for number in range(1000):
        looks.at(f"t{number}", 5.0)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(looks.schedule.run(look))
        await clock.advance(10)
        work.cancel()
    assert len(looks.seen) == 1000 and most == AT_ONCE


@virtual_time
async def test_an_object_can_be_put_back_while_it_is_looked_at() -> None:
    clock = FakeClock()
    looks = Looks(clock)

    async def look(ref: Ref) -> None:
        await looks.look(ref)
        if len(looks.seen) < 3:
            looks.at(ref.name, len(looks.seen) * 100.0)

    looks.at("again", 1.0)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(looks.schedule.run(look))
        await clock.advance(1000)
        work.cancel()
    assert [at for _, at in looks.seen] == [1.0, 100.0, 200.0]


@virtual_time
async def test_a_namespace_where_looks_never_end_holds_up_no_other() -> None:
    clock = FakeClock()
    looks = Looks(clock)

    async def look(ref: Ref) -> None:
        if ref.namespace == "without-rights":
            await asyncio.Event().wait()
        await looks.look(ref)

    for number in range(2 * AT_ONCE):
        looks.schedule.at(task_ref("without-rights", f"t{number}"), looks.start + 1.0)
    looks.at("well", 2.0)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(looks.schedule.run(look))
        await clock.advance(10)
        work.cancel()
    assert looks.seen == [("well", 2.0)]
