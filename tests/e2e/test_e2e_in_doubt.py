"""kill -9 in a call: what may have happened is asked about, what is known is used. The ledger is the witness."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aura_operator.core.entries import Claimed
from aura_operator.core.instants import from_text
from aura_operator.testing.ledger import Ledger
from hack.cluster import tools
from hack.kubectl import Kubectl
from tests.e2e.lives import killed_in_a_once_call, next_life
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, ended, says, started


@pytest.mark.behaviour(3)
async def test_a_once_call_that_was_running_is_asked_about_and_never_made_again(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None]
) -> None:
    await killed_in_a_once_call(stage, processes, ledger)
    status = await stage.until_phase("one", "Waiting")
    assert "IN DOUBT one-1" in status["summary"]
    assert status["unresolved"] == [{"call": 1, "tool": "led__once", "since": status["unresolved"][0]["since"]}]
    approve("one-1", choice="Done", reason="seen in the bank")
    status = await stage.done()
    assert "bob found that it did happen: seen in the bank" in status["result"]["text"]
    assert status["unresolved"] == []
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(3)
async def test_an_effect_in_doubt_is_said_wherever_one_looks_and_the_command_shown_settles_it(
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    kubectl: Kubectl,
    user_kubeconfig: Callable[[str], Path],
) -> None:
    await killed_in_a_once_call(stage, processes, ledger)
    await stage.until_phase("one", "Waiting")
    assert re.search(r"one +sre +Waiting +IN DOUBT one-1: led__once of .* may have happened", kubectl("get", "at"))
    assert re.search(r"one-1 +one +InDoubt +led__once +Once ", kubectl("get", "aa"))
    described = kubectl("describe", "at", "one")
    assert "InDoubt" in described and "Unresolved" in described
    events = {event["reason"]: event["note"] for event in await stage.events()}
    assert "led__once (call 1) may or may not have happened" in events["InDoubt"]
    approval = await stage.approval("one-1")
    request = approval["spec"]["request"]
    assert (request["kind"], request["tool"], request["effect"]) == ("InDoubt", "led__once", "Once")
    assert "notBefore" in request and '"key": "pay"' in request["arguments"]
    condition = next(item for item in (await stage.status())["conditions"] if item["type"] == "Parked")
    found = re.search(r"Settle: kubectl (patch .*) \(or Retry, or Abort\)", condition["message"])
    assert found is not None, condition
    command = f"{tools.bin_folder()}/kubectl --namespace {stage.namespace} {found[1]}"
    environment = os.environ | {"KUBECONFIG": str(user_kubeconfig("bob"))}
    subprocess.run(["sh", "-c", command], env=environment, check=True, capture_output=True)
    await stage.done()
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(3)
async def test_retry_makes_a_call_in_doubt_once_more_with_its_key_when_the_first_can_no_longer_run(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None]
) -> None:
    rule = {"match": "led__once", "timeoutSeconds": 4}
    step = calls(("led__once", {"key": "pay", "seconds": 1}))
    await killed_in_a_once_call(stage, processes, ledger, step=step, tools=[rule])
    not_before = (await stage.approval("one-1"))["spec"]["request"]["notBefore"]
    claims = [entry for entry in await stage.entries() if isinstance(entry, Claimed)]
    approve("one-1", choice="Retry", reason="the bank knows nothing of it")
    status = await stage.done()
    first, second = ledger.starts("once")
    assert first.idempotency_key == second.idempotency_key
    assert second.at >= from_text(not_before) > first.at + 4
    assert from_text(not_before) == pytest.approx(claims[1].at + 4, abs=0.002)
    assert status["unresolved"] == [] and "once pay: done" in status["result"]["text"]


@pytest.mark.behaviour(3)
async def test_abort_ends_the_task_and_the_effect_stays_named(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None]
) -> None:
    await killed_in_a_once_call(stage, processes, ledger)
    await stage.approval("one-1")
    approve("one-1", choice="Abort", reason="too dangerous")
    status = await stage.until_phase("one", "Failed")
    assert status["reason"] == "InDoubtAborted" and "too dangerous" in status["summary"]
    assert "UNRESOLVED, may have happened: led__once (call 1)" in status["summary"]
    assert [effect["tool"] for effect in status["unresolved"]] == ["led__once"]
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(3)
async def test_tell_model_says_that_it_may_have_happened_and_asks_nobody(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await killed_in_a_once_call(stage, processes, ledger, tools=[{"match": "led__once", "onInDoubt": "TellModel"}])
    status = await stage.done()
    assert "led__once was called at" in status["result"]["text"]
    assert "it may or may not have happened" in status["result"]["text"]
    assert [effect["tool"] for effect in status["unresolved"]] == ["led__once"], "told is not resolved"
    assert await stage.approvals() == []
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(3)
async def test_fail_ends_the_task_and_asks_nobody(stage: Stage, processes: Processes, ledger: Ledger) -> None:
    await killed_in_a_once_call(stage, processes, ledger, tools=[{"match": "led__once", "onInDoubt": "Fail"}])
    status = await stage.until_phase("one", "Failed")
    assert status["reason"] == "InDoubt" and "led__once" in status["summary"]
    assert [effect["tool"] for effect in status["unresolved"]] == ["led__once"]
    assert await stage.approvals() == []
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(4)
async def test_an_idempotent_call_that_was_running_is_made_again_with_the_same_key(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__idempotent", {"key": "scale", "seconds": 1})), says("ok")])
    await stage.task()
    processes.controller()
    first = processes.worker()
    await started(ledger, "idempotent")
    next_life(processes, first)
    await stage.done()
    lines = ledger.starts("idempotent")
    assert len(lines) == 2
    assert len({line.idempotency_key for line in lines}) == 1
    assert await stage.approvals() == []


@pytest.mark.behaviour(5)
async def test_results_that_were_recorded_before_the_kill_are_used_and_nothing_is_called_again(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    tools_called = ("read", "idempotent", "once")
    step = calls(*((f"led__{tool}", {"key": tool, "text": f"the {tool}'s answer"}) for tool in tools_called))
    await stage.agent([step, {**ECHO, "delay_seconds": 3.0}])
    await stage.task()
    processes.controller()
    first = processes.worker()
    await stage.until("one", lambda status: status.get("progress", {}).get("steps") == 4, "done with three calls")
    next_life(processes, first)
    status = await stage.done()
    assert status["recoveries"] == 0 and status["epoch"] == 2
    for tool in tools_called:
        assert f"the {tool}'s answer" in status["result"]["text"]
        assert len(ledger.starts(tool)) == 1


# Around an approved call


@pytest.mark.behaviour(19)
async def test_a_call_that_was_approved_while_its_worker_was_dead_runs_once(
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    approve: Callable[..., None],
    once_required: list[dict[str, Any]],
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=once_required)
    await stage.task()
    processes.controller()
    first = processes.worker()
    await stage.until_phase("one", "Waiting")
    first.kill9()
    approve("one-1")
    await stage.until_phase("one", "Pending")
    processes.worker(first.name, pod_uid=first.pod_uid)
    assert (await stage.done())["unresolved"] == []
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(19)
async def test_an_approved_call_whose_worker_is_killed_in_it_is_in_doubt(
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    approve: Callable[..., None],
    once_required: list[dict[str, Any]],
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay", "seconds": 30})), ECHO], tools=once_required)
    await stage.task()
    processes.controller()
    first = processes.worker()
    await stage.until_phase("one", "Waiting")
    approve("one-1")
    await started(ledger, "once")
    next_life(processes, first)
    doubt = await stage.approval("one-1-r1")
    assert doubt["spec"]["request"]["kind"] == "InDoubt"
    approve("one-1-r1", choice="Done", reason="seen")
    await stage.done()
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(19)
async def test_an_approved_call_whose_worker_is_killed_after_its_result_is_over(
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    approve: Callable[..., None],
    once_required: list[dict[str, Any]],
) -> None:
    await stage.agent(
        [calls(("led__once", {"key": "pay", "text": "paid"})), {**ECHO, "delay_seconds": 3}], tools=once_required
    )
    await stage.task()
    processes.controller()
    first = processes.worker()
    await stage.until_phase("one", "Waiting")
    approve("one-1")
    await ended(ledger, "once")
    await stage.until(
        "one", lambda status: status["progress"]["steps"] == 2 and not status["unresolved"], "past the call"
    )
    next_life(processes, first)
    assert (await stage.done())["result"]["text"].endswith("paid")
    assert len(ledger.starts("once")) == 1
    assert len(await stage.approvals()) == 1
