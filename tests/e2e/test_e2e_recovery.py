"""A task outlives its worker: real processes, real signals, the ledger as the witness."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from aura_operator.testing.ledger import Ledger
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, says, started


@pytest.mark.behaviour(3)
async def test_a_once_call_that_was_running_is_asked_about_and_never_made_again(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None]
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay", "seconds": 30})), ECHO])
    await stage.task()
    processes.controller()
    first = processes.worker()
    await started(ledger, "once")
    first.kill9()
    processes.worker(first.name, pod_uid=first.pod_uid)

    status = await stage.until_phase("one", "Waiting")
    assert "IN DOUBT one-1" in status["summary"]
    assert status["unresolved"] == [{"call": 1, "tool": "led__once", "since": status["unresolved"][0]["since"]}]
    approve("one-1", choice="Done", reason="seen in the bank")
    status = await stage.done()
    assert "bob found that it did happen: seen in the bank" in status["result"]["text"]
    assert status["unresolved"] == []
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(4)
async def test_an_idempotent_call_that_was_running_is_made_again_with_the_same_key(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__idempotent", {"key": "scale", "seconds": 2})), says("ok")])
    await stage.task()
    processes.controller()
    first = processes.worker()
    await started(ledger, "idempotent")
    first.kill9()
    processes.worker(first.name, pod_uid=first.pod_uid)
    await stage.done()
    lines = ledger.starts("idempotent")
    assert len(lines) == 2
    assert len({line.idempotency_key for line in lines}) == 1


@pytest.mark.behaviour(6)
async def test_sigterm_hands_a_task_over_in_the_middle_of_a_model_call(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__read", {"key": "a"})), says("ok", delay_seconds=1.0)])
    workers = {worker.name: worker for worker in (processes.worker(), processes.worker())}
    await stage.task()
    await stage.until("one", lambda status: status.get("progress", {}).get("steps") == 2, "past the read")
    owner = workers[(await stage.status())["owner"]["worker"]]
    owner.signal(signal.SIGTERM)
    status = await stage.done()
    assert status["epoch"] == 2
    assert status["recoveries"] == 0, "a hand-over is no death"
    assert owner.popen.wait(timeout=10) == 0
    assert len(ledger.starts("read")) == 1, "what was read is in the journal"
