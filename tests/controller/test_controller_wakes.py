"""What wakes a parked task, and when the controller looks at it again. Tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aura_operator.controller.reconcilers.wakes import Gathered, look_again_at, wake_for
from aura_operator.core.absorb import SteeringText
from aura_operator.core.instants import UnixSeconds
from aura_operator.core.lifecycle import Desired, Phase, WaitKind
from aura_operator.store.task_fields import Wait
from aura_operator.store.view import TaskView, task_view

NOW = UnixSeconds(1000.0)
ASKED = Wait(kind=WaitKind.APPROVAL, name="one-1", until=NOW + 600)
ASKED_TOO = Wait(kind=WaitKind.APPROVAL, name="one-2", until=NOW + 600)
NAP = Wait(kind=WaitKind.TIMER, name="sleep-3", until=NOW + 60)
OVER = Wait(kind=WaitKind.TIMER, name="sleep-4", until=NOW)
PAUSED = Wait(kind=WaitKind.PAUSE, name="pause", until=None)
WORD = (SteeringText(text="hurry", by="alice"),)


def parked(*waits: Wait, **fields: object) -> TaskView:
    manifest = {
        "metadata": {"name": "one", "namespace": "n", "uid": "u", "creationTimestamp": "2026-12-01T00:00:00Z"},
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
