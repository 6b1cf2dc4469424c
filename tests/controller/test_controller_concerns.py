"""The smaller concerns: why a task isn't taken, what ends with it, when it goes. Tables, and as the controller does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aura_operator.controller.reconcilers.explaining import (
    PATIENCE_SECONDS,
    PAUSED,
    Gathered,
    look_again_at,
    summary_for,
)
from aura_operator.controller.reconcilers.ttl import due_at
from aura_operator.core import codec
from aura_operator.core.instants import UnixSeconds
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.ownership import LeaseView
from aura_operator.errors import ContentRejectedError, NotFoundError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.resources import TASKS
from aura_operator.store.task_fields import JournalView
from aura_operator.store.view import TaskView, task_ref, task_view
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, calls
from tests.controller.house import House

NOW = 1_800_000_000.0
NEWER = JournalView(schema=codec.SCHEMA + 1, next=1, head="h", entries=(), sealed=None, sealed_next=0)
KNOWN = replace(NEWER, schema=codec.SCHEMA)


def worker(free_slots: int, *, schema: int = codec.SCHEMA) -> LeaseView:
    return LeaseView(
        worker="w",
        incarnation="u.1",
        pod_uid="u",
        duration_seconds=15.0,
        free_slots=free_slots,
        journal_schema=schema,
    )


def task(**fields: Any) -> TaskView:
    manifest = {
        "metadata": {"name": "one", "namespace": "n", "uid": "u"},
        "spec": {"agentRef": {"name": "sre"}, "input": "go"},
    }
    return replace(task_view(manifest), **fields)


@pytest.mark.behaviour(38)
@pytest.mark.parametrize(
    ("pending", "workers", "says"),
    [
        (task(), [worker(3), worker(2)], "no worker has taken it yet (2 live, 5 slots free)"),
        (task(), [], "no worker is live"),
        (task(journal=NEWER), [worker(3), worker(2)], f"written by a newer version (schema {codec.SCHEMA + 1}"),
        (task(journal=NEWER), [], "written by a newer version"),
        (task(journal=NEWER), [worker(1), worker(0, schema=codec.SCHEMA + 1)], "no worker has taken it yet"),
        (task(journal=KNOWN), [worker(1, schema=codec.SCHEMA - 1)], f"known here: {codec.SCHEMA - 1}"),
        (task(desired=Desired.PAUSE), [], "paused"),
        (task(phase=Phase.RUNNING), [], None),
        (task(phase=Phase.WAITING), [], None),
        (task(started_at=NOW - 9, active_deadline_seconds=10), [], "no worker is live"),
        (task(started_at=NOW - 10, active_deadline_seconds=10), [], None),
    ],
)
def test_why_a_task_is_not_taken(pending: TaskView, workers: list[LeaseView], says: str | None) -> None:
    since = NOW - PATIENCE_SECONDS if pending.phase is Phase.PENDING else None
    said = summary_for(Gathered(task=pending, pending_since=since, workers=workers, now=UnixSeconds(NOW)))
    assert (said is None) if says is None else (said is not None and says in said)


@pytest.mark.parametrize(("pending", "says"), [(task(), None), (task(desired=Desired.PAUSE), PAUSED)])
def test_only_a_pause_is_told_at_once(pending: TaskView, says: str | None) -> None:
    gathered = Gathered(task=pending, pending_since=NOW - PATIENCE_SECONDS + 0.1, workers=(), now=UnixSeconds(NOW))
    assert summary_for(gathered) == says
    assert look_again_at(gathered) == pytest.approx(NOW + 0.1)


@virtual_time
async def test_a_task_that_was_woken_has_the_same_patience_as_a_new_one() -> None:
    """Its age doesn't count. A word at once would be one more write on the way from a decision to the call."""
    house = House()
    async with house.controlled():
        await house.asking()
        await house.clock.advance(100)
        await house.approve()
        await house.clock.advance(PATIENCE_SECONDS - 0.5)
        assert (await house.status())["summary"] == "woken: one-1 is Approved"
        await house.clock.advance(1)
        assert "no worker is live" in (await house.status())["summary"]


ENDED = {"phase": Phase.SUCCEEDED, "finished_at": NOW}


@pytest.mark.behaviour(33)
@pytest.mark.parametrize(
    ("ended", "due"),
    [
        (task(**ENDED, ttl_seconds=60.0), NOW + 60),
        (task(**ENDED, ttl_seconds=0.0), NOW),
        (task(**ENDED), None),
        (task(**ENDED, ttl_seconds=60.0, deleting=True), None),
        (task(ttl_seconds=60.0), None),
    ],
)
def test_when_a_task_is_deleted(ended: TaskView, due: float | None) -> None:
    assert due_at(ended) == due


@pytest.mark.behaviour(33)
@virtual_time
async def test_a_finished_task_goes_after_its_ttl_and_no_other() -> None:
    house = House()
    async with house.controlled():
        for name, ttl in (("one", 60), ("two", 600)):
            await house.finished(name, ttlSecondsAfterFinished=ttl)
        await house.finished("kept")
        await house.clock.advance(58)
        assert await house.phase("one") == "Succeeded"
        await house.clock.advance(4)
        with pytest.raises(NotFoundError):
            await house.status("one")
        assert await house.phase("two") == "Succeeded"
        await house.patch(task_ref("n", "kept"), "/spec/ttlSecondsAfterFinished", 1)  # said later
        await house.clock.advance(1)
        with pytest.raises(NotFoundError):
            await house.status("kept")


@pytest.mark.behaviour(33)
@virtual_time
async def test_a_deletion_that_admission_refuses_is_not_asked_for_again_and_again() -> None:
    house = House()
    async with house.controlled() as (seat,):
        seat.store.add(Refuse(ContentRejectedError("it has effects that are unresolved")), calls("delete", TASKS))
        await house.finished(ttlSecondsAfterFinished=1)
        await house.clock.advance(170)
        assert len([call for call in seat.writes if call.method == "delete"]) == 1
        seat.store.clear()
        await house.clock.advance(180)
        with pytest.raises(NotFoundError):
            await house.status()


@pytest.mark.behaviour(25)
@virtual_time
async def test_what_a_finished_task_asked_is_withdrawn_and_what_another_run_asks_is_not() -> None:
    house = House()
    async with house.controlled():
        ended = await house.finished("one", Phase.CANCELLED)
        await house.approval(ended, house.clock.now() + 3600)
        other = await house.finished("two", Phase.CANCELLED)
        await house.approval(replace(other, run="another"), house.clock.now() + 3600)
        await house.clock.advance(200)  # the task was seen before its approval: a resync finds it
        status = (await house.memory.get(approval_ref("n", "one-1")))["status"]
        assert (status["phase"], status["reason"]) == ("Withdrawn", "the task ended (Cancelled)")
        assert (await house.memory.get(approval_ref("n", "two-1")))["status"]["phase"] == "Pending"


@pytest.mark.behaviour(20)
@virtual_time
async def test_an_approval_that_nobody_answers_expires_in_its_time_and_wakes_its_task() -> None:
    house = House()
    async with house.controlled():
        await house.asking(seconds=60)
        await house.clock.advance(58)
        assert await house.phase() == "Waiting"
        await house.clock.advance(4)
        status = (await house.memory.get(approval_ref("n", "one-1")))["status"]
        assert status["phase"] == "Expired" and "nobody answered" in status["reason"]
        assert await house.phase() == "Pending"


@virtual_time
async def test_a_fault_in_one_concern_stops_no_other() -> None:
    """Whatever can't be read of one object: the others, and the other concerns of the same one, go on."""
    house = House()
    async with house.controlled() as (seat,):
        seat.store.add(Refuse(NotFoundError("odd")), calls("patch", TASKS), nth=1)
        await house.asking()
        await house.approve()
        await house.clock.advance(10)
        assert (await house.memory.get(approval_ref("n", "one-1")))["status"]["phase"] == "Approved"
