"""A worker whose clock is behind the controller's goes on where the controller found a timer due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aura_operator.core.absorb import SteeringText
from aura_operator.core.lifecycle import Desired, WaitKind
from aura_operator.store.task_fields import Wait
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker.clocks import clock_lead_seconds

NOW = 1000.0
MANIFEST = {
    "metadata": {"name": "one", "namespace": "n", "uid": "u", "creationTimestamp": "2026-12-01T00:00:00Z"},
    "spec": {"agentRef": {"name": "sre"}, "input": "go"},
    "status": {"phase": "Pending", "epoch": 1},
}
NAP = Wait(kind=WaitKind.TIMER, name="sleep-3", until=NOW + 7)


def woken(**fields: object) -> TaskView:
    return replace(task_view(MANIFEST), waiting_for=(NAP,), **fields)  # type: ignore[arg-type]


@pytest.mark.behaviour(13)
@pytest.mark.parametrize(
    ("task", "seconds"),
    [
        (woken(fired=("sleep-3",)), 7.0),
        (woken(fired=()), 0.0),
        (woken(fired=("sleep-3",), steering=(SteeringText(text="hurry", by="a"),)), 0.0),
        (woken(fired=("sleep-3",), steering=(SteeringText(text="hurry", by="a"),), steering_consumed=1), 7.0),
        (woken(fired=("sleep-3",), desired=Desired.CANCEL), 0.0),
    ],
)
def test_the_controllers_clock_counts_for_timers_that_it_fired(task: TaskView, seconds: float) -> None:
    assert clock_lead_seconds(task, NOW) == seconds
    assert clock_lead_seconds(task, NOW + 10) == 0.0
