"""A resync reaches the same state as events do, and tells when events don't come; the real controller, virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from aura_operator.controller.controller import RESYNC_SECONDS, Controller, ControllerSettings
from aura_operator.controller.events import EventSource, StoreEvents, Tell
from aura_operator.controller.health import DEAF_SECONDS, LATE_SECONDS
from aura_operator.controller.reconcilers.explaining import PATIENCE_SECONDS
from aura_operator.controller.work import AT_ONCE
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.errors import UnavailableError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.follow import Change, Seen
from aura_operator.store.interface import Selection
from aura_operator.store.resources import APPROVALS, TASKS, Resource
from aura_operator.store.task_fields import Wait
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, calls
from tests.controller.house import HOME, House


@pytest.mark.behaviour(10)
@virtual_time
async def test_what_events_would_have_done_is_done_without_any() -> None:
    house = House()
    nap = Wait(kind=WaitKind.TIMER, name="sleep-1", until=house.clock.now() + 60)
    async with house.controlled() as (seat,):
        await house.clock.advance(1)
        seat.gate.shut = True
        await house.asking("asked")
        await house.approve("asked-1")
        await house.parked("asleep", nap)
        await house.finished("old", ttlSecondsAfterFinished=60)
        await house.task("pending")
        await house.agent()
        await house.clock.advance(RESYNC_SECONDS + PATIENCE_SECONDS + 1)
        assert await house.phase("asked") == "Pending"
        assert await house.phase("asleep") == "Pending"
        assert "no worker is live" in (await house.status("pending"))["summary"]
        names = [item["metadata"]["name"] for item in (await house.memory.list(Selection(resource=TASKS))).items]
        assert sorted(names) == ["asked", "asleep", "pending"]


@pytest.mark.behaviour(10)
@virtual_time
async def test_an_approval_that_went_unseen_wakes_its_task() -> None:
    """Its owner asks again. What was remembered of the approval must not outlive it."""
    house = House()
    await house.asking()
    async with house.controlled() as (seat,):
        await house.clock.advance(10)
        seat.gate.shut = True
        await house.delete(approval_ref("n", "one-1"))
        await house.clock.advance(RESYNC_SECONDS)
        assert await house.phase() == "Pending"


@virtual_time
async def test_an_approval_that_is_deleted_wakes_its_task_at_once() -> None:
    house = House()
    await house.asking()
    async with house.controlled():
        await house.clock.advance(10)
        await house.delete(approval_ref("n", "one-1"))
        await house.clock.advance(0.1)
        assert await house.phase() == "Pending"


@pytest.mark.behaviour(10)
@virtual_time
async def test_a_task_that_went_unseen_is_forgotten_and_its_namesake_is_not_taken_for_it() -> None:
    house = House()
    async with house.controlled() as (seat,):
        async with house.worker() as owner:
            await house.running("one", owner)
            await house.running("two", owner)
            await house.clock.advance(10)
            seat.gate.shut = True
            await house.delete(task_ref("n", "one"))
            await house.delete(task_ref("n", "two"))
            await house.task("two")
            await house.clock.advance(RESYNC_SECONDS)
        before = len(seat.store.log)
        await house.clock.advance(60)  # the worker is dead by now, and nothing of it is left to be taken
        asked = [call for call in seat.store.log[before:] if call.ref is not None and call.resource == TASKS]
        assert asked == []
        assert (await house.status("two"))["epoch"] == 0


@virtual_time
async def test_the_urgent_are_looked_at_before_all_that_can_wait() -> None:
    """A decided approval and a due timer come first, although a list names them last."""
    house = House()
    for number in range(3 * AT_ONCE):
        await house.finished(f"a{number:03}", ttlSecondsAfterFinished=0)
    await house.asking("y")
    await house.approve("y-1")
    await house.parked("z", Wait(kind=WaitKind.TIMER, name="sleep-1", until=house.clock.now()))
    async with house.controlled() as (seat,):
        await house.clock.advance(30)
        for name in ("y", "z"):
            woken = next(index for index, call in enumerate(seat.writes) if call.ref and call.ref.name == name)
            assert woken < 2 * AT_ONCE, name
        assert len((await house.memory.list(Selection(resource=TASKS))).items) == 2, "and all of them are, in the end"


@virtual_time
async def test_a_resync_of_what_is_as_it_should_be_writes_nothing() -> None:
    house = House()
    await house.asking()
    await house.parked("asleep", Wait(kind=WaitKind.TIMER, name="sleep-1", until=house.clock.now() + 1e6))
    await house.finished("done", Phase.SUCCEEDED)
    await house.task("pending", desired="Pause")
    await house.agent()
    async with house.controlled() as (seat,):
        await house.clock.advance(30)
        before = len(seat.writes)
        await house.clock.advance(5 * RESYNC_SECONDS)
        assert seat.writes[before:] == []
        lists = [call for call in seat.store.log if call.method == "list" and call.resource in (TASKS, APPROVALS)]
        assert len(lists) <= 2 * (1 + 6), "one a kind, besides the watch's own"


@pytest.mark.behaviour(31)
@virtual_time
async def test_many_parked_tasks_cost_no_requests_while_idle_and_a_decision_wakes_one() -> None:
    house = House()
    for number in range(200):
        await house.asking(f"t{number}", seconds=1e6)
    async with house.controlled() as (seat,):
        await house.clock.advance(30)
        seat.store.log.clear()
        await house.clock.advance(3 * RESYNC_SECONDS)
        assert seat.writes == []
        assert not [call for call in seat.store.log if call.method == "get" and call.resource in (TASKS, APPROVALS)]
        await house.approve("t99-1")
        await house.clock.advance(1)
        written = {(call.resource.kind, call.ref.name) for call in seat.writes if call.ref is not None}
        assert written == {("AuraTask", "t99"), ("AuraApproval", "t99-1")}


class OddEvents:
    """Tells of an object that no schema would let pass, then of all others."""

    def __init__(self, inner: EventSource) -> None:
        self._inner = inner

    async def run(self, resources: Sequence[Resource], tell: Tell) -> None:
        metadata = {"namespace": "n", "name": "odd", "uid": "u", "resourceVersion": "1"}
        tell(TASKS, Seen(change=Change.SET, object={"metadata": metadata, "spec": {}}))
        await self._inner.run(resources, tell)


@virtual_time
async def test_an_object_that_cannot_be_read_holds_up_no_other() -> None:
    house = House()
    settings = ControllerSettings(name="c", pod_uid="pod-c", operator_namespace=HOME)
    events = OddEvents(StoreEvents(house.memory, house.clock))
    controller = Controller(settings, house.memory, house.clock, events)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(controller.run(stop))
        await house.clock.advance(5)
        await house.asking()
        await house.approve()
        await house.clock.advance(1)
        assert await house.phase() == "Pending"
        stop.set()


# Whether it can be relied on


@virtual_time
async def test_a_source_that_breaks_is_started_anew_and_readiness_says_so_meanwhile() -> None:
    house = House()
    async with house.controlled() as (seat,):
        await house.clock.advance(5)
        assert seat.controller.not_ready() is None
        seat.gate.break_down()
        await house.clock.advance(0.1)
        assert "the source broke" in (seat.controller.not_ready() or "")
        await house.clock.advance(5)
        assert seat.controller.not_ready() is None and seat.gate.lives == 2
        await house.asking()
        await house.approve()
        await house.clock.advance(1)
        assert await house.phase() == "Pending", "it hears again"


@virtual_time
async def test_a_watch_that_is_deaf_is_found_out_by_a_list() -> None:
    house = House()
    async with house.controlled() as (seat,):
        await house.task()
        await house.clock.advance(10 * RESYNC_SECONDS)
        assert seat.controller.not_ready() is None, "nothing happened, and nothing was told: that is no fault"
        seat.gate.shut = True
        await house.task("unheard")
        await house.clock.advance(RESYNC_SECONDS + LATE_SECONDS + 1)
        assert "AuraTask n/unheard" in (seat.controller.not_ready() or "")
        assert seat.controller.unhealthy() is None
        await house.clock.advance(DEAF_SECONDS)
        assert "the watch is deaf" in (seat.controller.unhealthy() or "")
        seat.gate.shut = False
        seat.gate.break_down()
        await house.clock.advance(5)
        assert seat.controller.not_ready() is None and seat.controller.unhealthy() is None


@pytest.mark.behaviour(9)
@virtual_time
async def test_a_server_that_is_down_makes_it_unready_and_never_unhealthy() -> None:
    house = House()
    async with house.controlled() as (seat,):
        await house.clock.advance(5)
        seat.store.add(Refuse(UnavailableError("down")))
        await house.clock.advance(60)
        assert "hasn't answered" in (seat.controller.not_ready() or "")
        await house.clock.advance(7200)
        assert seat.controller.unhealthy() is None
        seat.store.clear()
        await house.clock.advance(10)
        assert seat.controller.not_ready() is None


@virtual_time
async def test_a_kind_that_may_not_be_listed_holds_up_no_other() -> None:
    house = House()
    async with house.controlled() as (seat,):
        seat.gate.shut = True
        seat.store.add(Refuse(UnavailableError("no")), calls("list", APPROVALS))
        await house.task()
        await house.clock.advance(RESYNC_SECONDS + PATIENCE_SECONDS + 1)
        assert "no worker is live" in (await house.status())["summary"]
