"""SIGTERM: a task goes on elsewhere at once, and a running effect comes to its end."""

from __future__ import annotations

import signal

import pytest

from aura_operator.core.entries import Claimed
from aura_operator.testing.ledger import Ledger
from tests.e2e.lives import SLOW_ONCE
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, says, started


@pytest.mark.behaviour(6)
async def test_sigterm_hands_a_task_over_in_the_middle_of_a_model_call(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__read", {"key": "a"})), says("ok", delay_seconds=4.0)])
    workers = {worker.name: worker for worker in (processes.worker(), processes.worker())}
    await stage.task()
    status = await stage.until("one", lambda status: status.get("progress", {}).get("steps") == 2, "past the read")
    owner = workers.pop(status["owner"]["worker"])
    owner.signal(signal.SIGTERM)
    (other,) = workers
    await stage.until("one", lambda status: status.get("owner", {}).get("worker") == other, "the other's")
    assert owner.popen.wait(timeout=2) == 0, "the model's answer is not waited for"
    status = await stage.done()
    assert status["epoch"] == 2
    assert status["recoveries"] == 0, "a hand-over is no death"
    assert len(ledger.starts("read")) == 1, "what was read is in the journal"


@pytest.mark.behaviour(6)
async def test_sigterm_lets_a_running_effect_end_and_hands_its_result_over(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay", "seconds": 1.5, "text": "paid"})), ECHO])
    owner = processes.worker()
    await stage.task()
    await started(ledger, "once")
    other = processes.worker()
    owner.signal(signal.SIGTERM)
    status = await stage.done()
    assert status["result"]["text"].endswith("paid") and status["unresolved"] == []
    assert status["epoch"] == 2 and status["recoveries"] == 0
    assert [entry.worker for entry in await stage.entries() if isinstance(entry, Claimed)] == [owner.name, other.name]
    assert owner.popen.wait(timeout=5) == 0
    assert len(ledger.starts("once")) == len(ledger.phase("end", "once")) == 1


@pytest.mark.behaviour(6)
async def test_an_effect_that_outlasts_the_grace_period_is_in_doubt(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([SLOW_ONCE, says("never")])
    processes.controller()
    owner = processes.worker(drain_seconds=0.5)
    await stage.task()
    await started(ledger, "once")
    processes.worker()
    assert owner.terminate() == 0
    status = await stage.until_phase("one", "Waiting")
    assert "IN DOUBT" in status["summary"] and status["unresolved"]
    assert len(ledger.starts("once")) == 1
