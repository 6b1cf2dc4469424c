"""A task outlives its worker: real processes, real signals, the ledger as the witness."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aura_operator.core.codec import SCHEMA
from aura_operator.core.entries import Claimed, Slept
from aura_operator.core.instants import from_text
from aura_operator.store.leases import lease_ref
from aura_operator.testing.ledger import Ledger
from hack.cluster import tools
from hack.install import NAMESPACE
from hack.kubectl import Kubectl
from hack.rig.forkserver import fork
from tests.processes import Process, Processes
from tests.stage import ECHO, Stage, calls, ended, says, started, until

Rules = list[dict[str, Any]]
SLOW_ONCE = calls(("led__once", {"key": "pay", "seconds": 30}))


def next_life(processes: Processes, worker: Process) -> Process:
    """kill -9, and the container of that Pod started again."""
    worker.kill9()
    return processes.worker(worker.name, pod_uid=worker.pod_uid)


async def killed_in_a_once_call(stage: Stage, processes: Processes, ledger: Ledger, **agent: Any) -> Process:
    """A worker's next life, after the first was killed while a `Once` call ran."""
    await stage.agent([agent.pop("step", SLOW_ONCE), ECHO], **agent)
    await stage.task()
    processes.controller()
    first = processes.worker()
    await started(ledger, "once")
    return next_life(processes, first)


# Seen and followed from elsewhere


@pytest.mark.behaviour(1)
async def test_a_viewer_lists_shows_and_follows_a_task_while_it_changes_hands(
    stage: Stage, processes: Processes, ledger: Ledger, kubectl: Kubectl, kubectl_as: Callable[[str], Kubectl]
) -> None:
    kubectl("create", "rolebinding", "viewers", "--clusterrole=aura-viewer", "--user=carol")
    carol = kubectl_as("carol")
    await stage.agent(
        [
            calls(("led__read", {"key": "a"})),
            calls(("led__idempotent", {"key": "b", "seconds": 1})),
            says("all is well"),
        ]
    )
    await stage.task()
    processes.controller()
    first = processes.worker()
    kubectl_path = str(tools.bin_folder() / "kubectl")
    place = ("--kubeconfig", str(carol.kubeconfig), "--namespace", stage.namespace)
    follower = await asyncio.create_subprocess_exec(
        kubectl_path, *place, "get", "auratask", "one", "--watch", stdout=asyncio.subprocess.PIPE
    )
    awaited = asyncio.create_task(
        asyncio.to_thread(carol, "wait", "--for=condition=Complete", "at/one", "--timeout=30s")
    )
    await started(ledger, "idempotent")
    assert re.search(r"^one +sre +Running +call 2: led__idempotent +3 ", carol("get", "auratasks"), re.MULTILINE)
    second = processes.worker()
    first.signal(signal.SIGTERM)
    await awaited
    assert second.name != first.name
    shown = carol("describe", "at", "one")
    assert re.search(r"Complete\s", shown) and "all is well" in shown
    assert follower.stdout is not None
    phases: list[str] = []
    async with asyncio.timeout(10):
        while "Succeeded" not in phases:
            columns = (await follower.stdout.readline()).decode().split()
            phases.append(columns[2])
    follower.kill()
    await follower.wait()
    assert phases.count("Running") >= 2
    steps = timeline(carol, stage.namespace, processes.folder)
    assert f"by {first.name}" in steps and "finished   Succeeded" in steps


def timeline(user: Kubectl, namespace: str, folder: Path, task: str = "one") -> str:
    """What `aura timeline` prints for a user."""
    output = folder / "timeline.txt"
    output.unlink(missing_ok=True)
    shown = fork(["timeline", task, "--namespace", namespace, "--kubeconfig", str(user.kubeconfig)], output)
    assert shown.wait(timeout=10) == 0, output.read_text()
    return output.read_text()


# kill -9 in a call


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


# SIGTERM


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


# Proof of death, poison, timers, versions


@pytest.mark.behaviour(8)
async def test_a_restarted_container_makes_its_tasks_orphans_at_once(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__idempotent", {"key": "a", "seconds": 1})), says("ok")])
    await stage.task()
    processes.controller()
    first = processes.worker()
    await started(ledger, "idempotent")
    next_life(processes, first)
    status = await stage.until("one", lambda status: status.get("lastEnd"), "orphaned")
    lease = await stage.store.get(lease_ref(NAMESPACE, first.name))
    assert status["lastEnd"]["proof"] == "ContainerRestarted"
    assert 0 <= from_text(status["lastEnd"]["at"]) - from_text(lease["spec"]["acquireTime"]) < 2
    await stage.done()


@pytest.mark.behaviour(12)
async def test_a_task_that_kills_its_worker_each_time_is_poisoned_and_others_dont_pay(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__idempotent", {"key": "poison", "seconds": 60})), says("never")])
    await stage.agent([calls(("led__read", {"key": "other"})), says("ok")], name="harmless")
    await stage.task("poison")
    processes.controller()
    worker = processes.worker()
    for death in range(1, 7):
        await started(ledger, "idempotent", "poison", count=death)
        if death == 4:  # recovered three times by now
            await stage.task("other", agent="harmless")
            lease = lease_ref(NAMESPACE, worker.name)
            annotations: dict[str, str] = {}
            async with asyncio.timeout(20):
                while annotations.get("aura.mezmo.com/free-slots") != "0":
                    annotations = (await stage.store.get(lease))["metadata"]["annotations"]
                    await asyncio.sleep(0.05)
            assert (await stage.status("other"))["phase"] == "Pending", "a quarantined task runs alone"
            spare = processes.worker()
            await stage.done("other")
            spare.terminate()
        worker = next_life(processes, worker)
    status = await stage.until_phase("poison", "Failed")
    assert status["reason"] == "Poisoned" and "died 6 times in a row" in status["summary"]
    await stage.task("later", agent="harmless")
    await stage.done("later")
    assert len(ledger.starts("idempotent", "poison")) == 6


@pytest.mark.behaviour(13)
async def test_a_kill_during_a_sleep_changes_nothing_of_its_end(
    stage: Stage, processes: Processes, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent([calls(("sleep", {"seconds": 6}), ("led__once", {"key": "a"})), says("ok")], tools=once_required)
    await stage.task()
    processes.controller()
    first = processes.worker()
    status = await stage.until_phase("one", "Waiting")
    (ends,) = [wait["until"] for wait in status["waitingFor"] if wait["kind"] == "Timer"]
    assert "owner" not in status, "nobody is bound by a sleep"
    first.kill9()
    processes.worker()
    # Woken in between by something else, it has to find its way back to the same end.
    await until(lambda: time.time() > from_text(ends) - 3, "middle of the sleep")
    approve("one-2")
    status = await stage.until("one", lambda status: status["epoch"] == 2 and not status.get("owner"), "asleep again")
    assert [wait["until"] for wait in status["waitingFor"]] == [ends]
    await stage.done()
    slept = next(entry for entry in await stage.entries() if isinstance(entry, Slept))
    assert 0 <= slept.at - from_text(ends) < 2


@pytest.mark.behaviour(13)
async def test_a_kill_in_the_last_seconds_of_a_sleep_that_a_worker_sees_through_neither(
    stage: Stage, processes: Processes
) -> None:
    await stage.agent([calls(("sleep", {"seconds": 1.9})), says("ok")])
    await stage.task()
    processes.controller()
    first = processes.worker()
    await stage.until("one", lambda status: status.get("progress", {}).get("steps") == 1, "asleep")
    next_life(processes, first)
    await stage.done()
    entries = await stage.entries()
    slept = next(entry for entry in entries if isinstance(entry, Slept))
    claimed = [entry.at for entry in entries if isinstance(entry, Claimed)]
    ends = entries[1].at + 1.9
    assert len(claimed) == 2
    assert ends <= slept.at < max(ends, claimed[1]) + 0.8


@pytest.mark.behaviour(14)
async def test_a_journal_of_a_newer_version_is_left_alone_and_nothing_crashes(
    stage: Stage, processes: Processes, as_worker: Callable[..., Any]
) -> None:
    await stage.agent([says("ok")])
    await stage.task("newer", desired="Pause")
    checkpoint = {"schema": SCHEMA + 1, "next": 1, "head": "f" * 64, "entries": ['{"k":"from the future"}']}
    await as_worker("newer", journal=checkpoint, epoch=1, run="7f1f2c86-6a2c-4a3e-8a58-0d6f8a4cf7ce")
    controller, worker = processes.controller(), processes.worker()
    await stage.patch_task("newer", desired="Run")
    await stage.task("ours")
    await stage.done("ours")
    # Five seconds after its creation the controller says why it is still pending: by then all have had their chance.
    status = await stage.until("newer", lambda status: status.get("summary"), "explained")
    assert (status["phase"], status["epoch"], status["journal"]) == ("Pending", 1, checkpoint)
    assert controller.running and worker.running


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
