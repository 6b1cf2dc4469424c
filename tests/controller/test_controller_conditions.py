"""Conditions: when they move, and what a task that nobody owns says of itself."""

from __future__ import annotations

import pytest

from aura_operator.controller.controller import RESYNC_SECONDS
from aura_operator.core.instants import to_second_text
from aura_operator.core.lifecycle import WaitKind
from aura_operator.core.ownership import LEASE_SECONDS
from aura_operator.store.conditions import Condition, going_on, holds, updated
from aura_operator.store.interface import add
from aura_operator.store.task_fields import ConditionFields, Wait
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import virtual_time
from tests.controller.house import House

NOW = 1_800_000_000.0
ONE = task_ref("n", "one")


def fields(kind: str, status: str, reason: str = "Old", since: float = NOW - 60) -> ConditionFields:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "",
        "lastTransitionTime": to_second_text(since),
    }


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ([], Condition(type="Parked", holds=True, reason="New"), [fields("Parked", "True", "New", NOW)]),
        (
            [fields("Parked", "True")],
            Condition(type="Parked", holds=False, reason="New"),
            [fields("Parked", "False", "New", NOW)],
        ),
        (
            [fields("Parked", "True")],
            Condition(type="Parked", holds=True, reason="New"),
            [fields("Parked", "True", "New", NOW - 60)],  # another reason is no transition
        ),
        (
            [fields("Parked", "True"), fields("Ours", "True")],
            Condition(type="Parked", holds=True, reason="Old"),
            [fields("Parked", "True"), fields("Ours", "True")],
        ),
        (
            [fields("Theirs", "Unknown")],
            Condition(type="Parked", holds=False, reason="New"),
            [fields("Theirs", "Unknown"), fields("Parked", "False", "New", NOW)],
        ),
        (
            [fields("Parked", "Unknown")],
            Condition(type="Parked", holds=False, reason="New"),
            [fields("Parked", "False", "New", NOW)],
        ),
    ],
)
def test_a_condition_moves_only_where_its_status_does(
    before: list[ConditionFields], wanted: Condition, after: list[ConditionFields]
) -> None:
    assert updated(before, wanted, now=NOW) == after


def test_a_message_that_is_too_long_for_the_schema_is_cut() -> None:
    (condition,) = updated([], Condition(type="Failed", holds=True, reason="X", message="x" * 9000), now=NOW)
    assert len(condition["message"]) <= 4096


def test_a_task_that_goes_on_is_neither_parked_nor_paused() -> None:
    before = [fields("Parked", "True"), fields("Paused", "True"), fields("Theirs", "True")]
    after = updated(before, *going_on(before, "Running"), now=NOW)
    assert [(item["type"], item["status"]) for item in after] == [
        ("Parked", "False"),
        ("Paused", "False"),
        ("Theirs", "True"),
    ]
    assert [item.type for item in going_on([], "Running")] == ["Parked"], "what was never said needs no denial"


# A task that nobody owns


@virtual_time
async def test_a_task_that_was_woken_is_not_parked_any_more() -> None:
    """Nobody is told to approve what is approved. Told by the approval, and by the task's own waits."""
    house = House()
    async with house.controlled():
        await house.asking("one")
        await house.parked("two", Wait(kind=WaitKind.TIMER, name="sleep-1", until=house.clock.now() + 60))
        await house.clock.advance(30)
        assert (await house.condition("Parked"))["status"] == "True"  # type: ignore[index]
        await house.clock.advance(28)
        await house.approve()
        await house.clock.advance(3)
        for name, why in (("one", "one-1 is Approved"), ("two", "sleep-1 is over")):
            status, parked = await house.status(name), await house.condition("Parked", name)
            assert parked is not None and status["phase"] == "Pending"
            assert (parked["status"], parked["reason"]) == ("False", "Woken") and why in parked["message"]
            assert why in status["summary"]


@virtual_time
async def test_a_task_that_was_taken_from_its_owner_says_so() -> None:
    house = House()
    async with house.controlled():
        async with house.worker() as owner:
            await house.running("one", owner)
        await house.clock.advance(LEASE_SECONDS + 2)
        parked = await house.condition("Parked")
        assert parked is not None and (parked["status"], parked["reason"]) == ("False", "Orphaned")


@virtual_time
async def test_a_pause_shows_at_once_and_goes_with_its_end() -> None:
    house = House()
    async with house.controlled():
        await house.asking("parked")
        await house.task("pending")
        for name in ("parked", "pending"):
            ref = task_ref("n", name)
            await house.memory.patch(ref, [add("/spec/desired", "Pause")])
            await house.clock.advance(0.1)
            assert holds((await house.status(name))["conditions"], "Paused")
            await house.memory.patch(ref, [add("/spec/desired", "Run")])
            await house.clock.advance(0.1)
            paused = await house.condition("Paused", name)
            assert paused is not None and (paused["status"], paused["reason"]) == ("False", "Resumed")
        assert (await house.status("parked"))["summary"] == "parked", "what it waits for is still said"


@virtual_time
async def test_an_approval_of_a_paused_task_says_both() -> None:
    house = House()
    async with house.controlled():
        await house.asking()
        await house.memory.patch(ONE, [add("/spec/desired", "Pause")])
        await house.clock.advance(1)
        await house.approve()
        await house.clock.advance(1)
        conditions = (await house.status())["conditions"]
        assert not holds(conditions, "Parked") and holds(conditions, "Paused")
        assert "paused" in (await house.status())["summary"]


@virtual_time
async def test_a_pause_that_goes_on_is_written_once() -> None:
    house = House()
    async with house.controlled() as (seat,):
        await house.task("one", desired="Pause")
        await house.clock.advance(30)
        since = (await house.condition("Paused"))["lastTransitionTime"]  # type: ignore[index]
        before = len(seat.writes)
        await house.clock.advance(3 * RESYNC_SECONDS)
        assert seat.writes[before:] == []
        assert (await house.condition("Paused"))["lastTransitionTime"] == since  # type: ignore[index]
