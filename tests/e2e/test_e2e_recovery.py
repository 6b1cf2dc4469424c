"""A task outlives its worker: proof of death, poison, timers, versions. Real processes, real signals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from aura_operator.core.codec import SCHEMA
from aura_operator.core.entries import Claimed, Slept
from aura_operator.core.instants import from_text
from aura_operator.store.leases import lease_ref
from aura_operator.testing.ledger import Ledger
from hack.install import NAMESPACE
from tests.e2e.lives import next_life
from tests.processes import Processes
from tests.stage import Stage, calls, says, started, until

Rules = list[dict[str, Any]]


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
