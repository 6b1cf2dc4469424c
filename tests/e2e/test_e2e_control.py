"""Cancel, pause and steer: through the object alone, in any state of the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aura_operator.core.entries import Controlled, Finished, Outcome, Result, SteeringConsumed
from aura_operator.core.instants import from_text
from aura_operator.testing.ledger import Ledger
from hack.kubectl import Kubectl, KubectlError
from tests.stage import ECHO, Stage, calls, ended, says, started

pytestmark = pytest.mark.usefixtures("operator")

Rules = list[dict[str, Any]]
CANCEL = '{"spec":{"desired":"Cancel"}}'


async def cancelled(stage: Stage, name: str = "one") -> dict[str, Any]:
    status = await stage.until_phase(name, "Cancelled", "Succeeded", "Failed")
    assert (status["phase"], status["reason"]) == ("Cancelled", "Cancelled")
    assert status["waitingFor"] == [] and "owner" not in status
    return status


# Cancel


@pytest.mark.behaviour(25)
async def test_cancel_ends_a_task_in_the_middle_of_a_model_call(stage: Stage, kubectl: Kubectl) -> None:
    await stage.agent([says("too late", delay_seconds=30)])
    await stage.task()
    await stage.until_phase("one", "Running")
    kubectl("patch", "at", "one", "--type=merge", "--patch", CANCEL)
    status = await cancelled(stage)
    assert "result" not in status and from_text(status["finishedAt"]) - from_text(status["startedAt"]) < 15


@pytest.mark.behaviour(25)
async def test_cancel_stops_a_running_call_and_writes_down_that_it_may_have_happened(
    stage: Stage, ledger: Ledger, kubectl: Kubectl
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay", "seconds": 40})), says("never")])
    await stage.task()
    await started(ledger, "once")
    kubectl("patch", "at", "one", "--type=merge", "--patch", CANCEL)
    status = await cancelled(stage)
    assert [effect["tool"] for effect in status["unresolved"]] == ["led__once"]
    assert "UNRESOLVED, may have happened: led__once (call 1)" in status["summary"]
    (result,) = [entry for entry in await stage.entries() if isinstance(entry, Result)]
    assert result.outcome is Outcome.UNKNOWN
    assert len(ledger.starts("once")) == 1 and ledger.phase("end", "once") == ()


@pytest.mark.behaviour(25)
async def test_cancel_ends_a_parked_task_and_withdraws_what_it_asked(
    stage: Stage, ledger: Ledger, kubectl: Kubectl, approve: Callable[..., None], once_required: Rules
) -> None:
    step = calls(("led__once", {"key": "a"}), ("led__once", {"key": "b"}))
    await stage.agent([step, says("never")], tools=once_required)
    await stage.task()
    await stage.until_phase("one", "Waiting")
    kubectl("patch", "at", "one", "--type=merge", "--patch", CANCEL)
    await cancelled(stage)
    for approval in ("one-1", "one-2"):
        settled = await stage.approval(approval, lambda manifest: manifest["status"]["phase"] != "Pending")
        assert settled["status"]["phase"] == "Withdrawn"
        assert settled["status"]["reason"] == "the task ended (Cancelled)"
    with pytest.raises(KubectlError, match="this approval is already settled: Withdrawn"):
        approve("one-1")
    assert ledger.starts() == ()


@pytest.mark.behaviour(25)
async def test_cancel_ends_a_task_that_sleeps(stage: Stage, kubectl: Kubectl) -> None:
    await stage.agent([calls(("sleep", {"seconds": 3600})), says("never")])
    await stage.task()
    await stage.until_phase("one", "Waiting")
    kubectl("patch", "at", "one", "--type=merge", "--patch", CANCEL)
    await cancelled(stage)


@pytest.mark.behaviour(25)
async def test_cancel_ends_a_paused_task_that_never_ran(stage: Stage, kubectl: Kubectl, ledger: Ledger) -> None:
    await stage.agent([calls(("led__once", {"key": "a"})), says("never")])
    await stage.task(desired="Pause")
    kubectl("patch", "at", "one", "--type=merge", "--patch", CANCEL)
    await cancelled(stage)
    assert ledger.starts() == ()


@pytest.mark.behaviour(25)
async def test_a_deadline_counts_waiting_and_ends_the_task(stage: Stage, ledger: Ledger, once_required: Rules) -> None:
    await stage.agent([calls(("led__once", {"key": "a"})), says("never")], tools=once_required)
    await stage.task(activeDeadlineSeconds=2)
    await stage.until_phase("one", "Waiting")
    status = await stage.until_phase("one", "Failed")
    assert status["reason"] == "DeadlineExceeded"
    settled = await stage.approval("one-1", lambda manifest: manifest["status"]["phase"] != "Pending")
    assert settled["status"]["phase"] == "Withdrawn"
    assert ledger.starts() == ()


# Pause


@pytest.mark.behaviour(26)
async def test_pause_stops_before_the_next_step_and_run_goes_on(stage: Stage, ledger: Ledger) -> None:
    await stage.agent(
        [calls(("led__once", {"key": "a", "seconds": 1})), calls(("led__once", {"key": "b"})), says("ok")]
    )
    await stage.task()
    await started(ledger, "once", "a")
    await stage.patch_task("one", desired="Pause")
    status = await stage.until_phase("one", "Waiting")
    assert [wait["kind"] for wait in status["waitingFor"]] == ["Pause"]
    assert "owner" not in status and "paused" in status["summary"]
    assert len(ledger.phase("end", "once", "a")) == 1, "what runs comes to its end"
    assert status["unresolved"] == []
    assert ledger.starts("once", "b") == ()
    await stage.patch_task("one", desired="Run")
    await stage.done()
    assert len(ledger.starts("once", "a")) == len(ledger.starts("once", "b")) == 1
    controls = [entry.control.value for entry in await stage.entries() if isinstance(entry, Controlled)]
    assert controls == ["Pause", "Run"]


@pytest.mark.behaviour(26)
async def test_pause_holds_a_task_that_waits_for_a_decision_also_when_that_comes(
    stage: Stage, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent([calls(("led__once", {"key": "a"})), says("ok")], tools=once_required)
    await stage.task()
    await stage.until_phase("one", "Waiting")
    await stage.patch_task("one", desired="Pause")
    approve("one-1")
    await stage.approval("one-1", lambda manifest: manifest["status"]["phase"] == "Approved")
    await stage.task("other", desired="Pause")
    await stage.until("other", lambda status: "paused" in status.get("summary", ""), "explained")
    assert ledger.starts() == ()
    await stage.patch_task("one", desired="Run")
    await stage.done()
    assert len(ledger.starts("once")) == 1


# Steering


def message(number: int, text: str) -> dict[str, str]:
    return {"id": f"m{number}", "text": text}


@pytest.mark.behaviour(26)
async def test_messages_to_a_running_task_are_read_once_in_order_with_the_next_model_request(
    stage: Stage, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__once", {"key": "a", "seconds": 1})), ECHO])
    await stage.task()
    await started(ledger, "once")
    manifest = await stage.read()
    for number, text in enumerate(("first word", "second word")):
        steering = [*manifest["spec"].get("steering", []), message(number, text)]
        await stage.patch_task("one", steering=steering)
        manifest = await stage.read()
    status = await stage.done()
    lines = status["result"]["text"].splitlines()
    assert [line for line in lines if "word" in line] == [lines[2], lines[3]]
    assert "first word" in lines[2] and "second word" in lines[3] and lines[1] == "once a: done"
    assert status["steering"] == {"consumed": 2}
    assert len(ledger.starts("once")) == 1
    consumed = [entry for entry in await stage.entries() if isinstance(entry, SteeringConsumed)]
    assert [entry.position for entry in consumed] == [0, 1] and all(entry.by for entry in consumed)


@pytest.mark.behaviour(26)
async def test_a_message_ends_a_sleep(stage: Stage) -> None:
    await stage.agent([calls(("sleep", {"seconds": 3600})), ECHO])
    await stage.task()
    await stage.until_phase("one", "Waiting")
    await stage.patch_task("one", steering=[message(0, "wake up")])
    text = (await stage.done())["result"]["text"]
    assert "woken before the time was over: there is a message for you" in text and text.count("wake up") == 1


@pytest.mark.behaviour(26)
async def test_a_message_to_a_task_that_waits_for_a_decision_withdraws_nothing(
    stage: Stage,
    ledger: Ledger,
    kubectl_as: Callable[[str], Kubectl],
    approve: Callable[..., None],
    once_required: Rules,
) -> None:
    await stage.agent([calls(("led__once", {"key": "a"})), ECHO], tools=once_required)
    await stage.task()
    await stage.until_phase("one", "Waiting")
    await stage.patch_task("one", steering=[message(0, "by the way")])
    approve("one-1")
    lines = (await stage.done())["result"]["text"].splitlines()
    assert lines[1] == "once a: done" and "by the way" in lines[2]
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(26)
async def test_a_message_to_a_task_that_nobody_owns_yet_is_read_when_it_runs(stage: Stage) -> None:
    await stage.agent([ECHO])
    await stage.task(desired="Pause")
    await stage.patch_task("one", steering=[message(0, "before you start")])
    await stage.patch_task("one", desired="Run")
    assert (await stage.done())["result"]["text"].count("before you start") == 1


@pytest.mark.behaviour(25)
async def test_a_result_that_comes_after_the_end_changes_nothing(stage: Stage, ledger: Ledger) -> None:
    await stage.agent([calls(("led__idempotent", {"key": "a", "seconds": 1.5})), says("never")])
    await stage.task()
    await started(ledger, "idempotent")
    await stage.patch_task("one", desired="Cancel")
    before = await cancelled(stage)
    assert isinstance((await stage.entries())[-1], Finished)
    # Another task's whole life passes, and what the server may still have said is over.
    await stage.task("later")
    await ended(ledger, "idempotent")
    assert await stage.status() == before
