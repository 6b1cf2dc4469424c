"""Control given while nobody is there to hear it counts when somebody is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aura_operator.testing.ledger import Ledger
from hack.kubectl import Kubectl
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, says, started

Rules = list[dict[str, Any]]


@pytest.mark.behaviour(25)
async def test_a_task_that_no_worker_has_taken_is_cancelled_by_the_first_that_could(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__once", {"key": "a"})), says("never")])
    await stage.task()
    await stage.patch_task("one", desired="Cancel")
    processes.worker()
    assert (await stage.until_phase("one", "Cancelled", "Succeeded"))["phase"] == "Cancelled"
    assert ledger.starts() == ()


@pytest.mark.behaviour(25)
async def test_a_full_worker_still_cancels(stage: Stage, processes: Processes, ledger: Ledger) -> None:
    await stage.agent([calls(("led__read", {"key": "a", "seconds": 20})), says("ok")])
    processes.worker(slots=1)
    await stage.task("busy")
    await started(ledger, "read")
    await stage.task("waiting")
    await stage.patch_task("waiting", desired="Cancel")
    await stage.until_phase("waiting", "Cancelled")
    assert (await stage.status("busy"))["phase"] == "Running"


@pytest.mark.behaviour(25)
async def test_a_task_whose_owner_is_dead_is_cancelled_by_another_and_its_effect_stays_named(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay", "seconds": 30})), says("never")])
    await stage.task()
    processes.controller()
    first = processes.worker()
    await started(ledger, "once")
    first.kill9()
    await stage.patch_task("one", desired="Cancel")
    processes.worker(first.name, pod_uid=first.pod_uid)
    status = await stage.until_phase("one", "Cancelled", "Succeeded", "Failed")
    assert status["phase"] == "Cancelled"
    assert [effect["tool"] for effect in status["unresolved"]] == ["led__once"]
    assert await stage.approvals() == [], "nobody is asked about a task that ends anyway"
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(25)
async def test_a_parked_task_is_cancelled_although_controller_and_worker_were_away(
    stage: Stage, processes: Processes, ledger: Ledger, once_required: Rules
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay"})), says("never")], tools=once_required)
    await stage.task()
    gone = [processes.controller(), processes.worker()]
    await stage.until_phase("one", "Waiting")
    for process in gone:
        process.kill9()
    await stage.patch_task("one", desired="Cancel")
    for process, start in zip(gone, (processes.controller, processes.worker), strict=True):
        start(process.name, pod_uid=process.pod_uid)
    await stage.until_phase("one", "Cancelled")
    settled = await stage.approval("one-1", lambda manifest: manifest["status"]["phase"] != "Pending")
    assert settled["status"]["phase"] == "Withdrawn"
    assert ledger.starts() == ()


@pytest.mark.behaviour(26)
async def test_a_message_to_a_parked_task_is_read_although_all_were_away(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=once_required)
    await stage.task()
    gone = [processes.controller(), processes.worker()]
    await stage.until_phase("one", "Waiting")
    for process in gone:
        process.kill9()
    await stage.patch_task("one", steering=[{"id": "m", "text": "while you were away"}])
    approve("one-1")
    for process, start in zip(gone, (processes.controller, processes.worker), strict=True):
        start(process.name, pod_uid=process.pod_uid)
    text = (await stage.done())["result"]["text"]
    assert text.count("while you were away") == 1 and "once pay: done" in text
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(26)
async def test_a_paused_task_holds_no_slot(stage: Stage, processes: Processes, ledger: Ledger) -> None:
    await stage.agent([says("ok", delay_seconds=30)], name="slow")
    await stage.agent([says("ok")])
    processes.controller()
    processes.worker(slots=1)
    await stage.task("paused", agent="slow")
    await stage.until_phase("paused", "Running")
    await stage.patch_task("paused", desired="Pause")
    await stage.until_phase("paused", "Waiting")
    await stage.task("other")
    await stage.done("other")
    assert (await stage.status("paused"))["phase"] == "Waiting"


@pytest.mark.behaviour(33)
async def test_a_deleted_task_gives_its_slot_back_whatever_its_call_is_doing(
    stage: Stage, processes: Processes, ledger: Ledger, kubectl: Kubectl
) -> None:
    await stage.agent([calls(("led__read", {"key": "a", "seconds": 50})), says("never")])
    await stage.agent([says("ok")], name="harmless")
    worker = processes.worker(slots=1)
    await stage.task("deleted")
    await started(ledger, "read")
    kubectl("delete", "auratask", "deleted")
    await stage.task("other", agent="harmless")
    await stage.done("other")
    assert ledger.phase("end", "read") == () and worker.running
