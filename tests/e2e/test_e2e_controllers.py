"""The controller as a process: who leads, what two of them do at once, what a resync finds, what a TTL deletes."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aura_operator.core.entries import Decided
from aura_operator.errors import NotFoundError
from aura_operator.store.leases import lease_ref
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.proxy_rules import CutBefore, SeenRequest
from aura_operator.testing.proxy_thread import ProxyThread
from hack.install import NAMESPACE
from tests.processes import Processes
from tests.stage import POLL_SECONDS, Stage, calls, says, until

Rules = list[dict[str, Any]]
LEADER = lease_ref(NAMESPACE, "aura-controller")
PAY = [calls(("led__once", {"key": "pay"})), says("ok")]


async def leader(stage: Stage, holds: Callable[[str], bool], seconds: float) -> str:
    """The holder of the leader Lease, once it is the one wanted."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                holder: str = (await stage.store.get(LEADER))["spec"]["holderIdentity"]
                if holds(holder):
                    return holder
            except NotFoundError:
                pass
            await asyncio.sleep(POLL_SECONDS)


async def gone(stage: Stage, task: str, seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while True:
            try:
                await stage.read(task)
            except NotFoundError:
                return
            await asyncio.sleep(POLL_SECONDS)


@pytest.mark.behaviour(8, 18)
async def test_a_restarted_leader_leads_at_once(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent(PAY, tools=once_required)
    first = processes.controller()
    processes.worker()
    await stage.task()
    await stage.until_phase("one", "Waiting")
    before = await leader(stage, bool, 5)
    first.kill9()
    approve("one-1")
    began = time.monotonic()
    processes.controller(first.name, pod_uid=first.pod_uid)
    await leader(stage, lambda holder: holder != before, 5)
    await stage.done()
    assert time.monotonic() - began < 8, "nobody waited for the Lease to run out"
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(18)
async def test_a_leader_that_leaves_in_good_order_makes_room_at_once(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent(PAY, tools=once_required)
    first = processes.controller("first")
    await leader(stage, lambda holder: holder.startswith("first"), 5)
    processes.controller("second")
    processes.worker()
    await stage.task()
    await stage.until_phase("one", "Waiting")
    assert first.terminate() == 0
    await leader(stage, lambda holder: holder.startswith("second"), 5)
    approve("one-1")
    await stage.done()
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(18)
async def test_another_leads_when_the_leaders_lease_has_run_out(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent(PAY, tools=once_required)
    first = processes.controller("first")
    await leader(stage, lambda holder: holder.startswith("first"), 5)
    second = processes.controller("second")
    processes.worker()
    await stage.task()
    await stage.until_phase("one", "Waiting")
    first.signal(signal.SIGSTOP)  # worse than dead: it may come back
    approve("one-1")
    await leader(stage, lambda holder: holder.startswith("second"), 25)
    await stage.done()
    first.signal(signal.SIGCONT)
    await stage.task("two")
    await stage.approval("two-1")
    approve("two-1")
    await stage.done("two")
    assert (await leader(stage, bool, 5)).startswith("second")
    assert first.running and second.running
    assert len(ledger.starts("once")) == 2


@pytest.mark.behaviour(10, 17)
async def test_two_that_lead_at_once_do_no_harm(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent([calls(("sleep", {"seconds": 2.5})), *PAY], tools=once_required)
    controllers = [processes.controller("first"), processes.controller("second")]
    processes.worker()
    await leader(stage, bool, 5)
    # The first doesn't know for some seconds that its Lease is gone, and the second takes the new one.
    names = [f"task-{number}" for number in range(4)]
    for name in names:
        await stage.task(name)
    await stage.store.delete(LEADER, uid=(await stage.store.get(LEADER))["metadata"]["uid"])
    await until(lambda: all(process.logged("leading") for process in controllers), "second leader")
    for name in names:
        await stage.approval(f"{name}-2")
        approve(f"{name}-2")
    for name in names:
        assert (await stage.done(name))["epoch"] == 3
        assert len([entry for entry in await stage.entries(name) if isinstance(entry, Decided)]) == 1
    runs = [line.run for line in ledger.starts("once")]
    assert len(runs) == len(set(runs)) == len(names)
    for process in controllers:
        assert process.running and process.logged("a fault of this operator; please report it") == []


@pytest.mark.behaviour(10, 18)
async def test_a_resync_does_what_events_would_have_done(
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    proxy: ProxyThread,
    through: Callable[[ProxyThread, Path], Path],
    approve: Callable[..., None],
    once_required: Rules,
) -> None:
    await stage.agent(PAY, tools=once_required)
    await stage.agent([calls(("sleep", {"seconds": 3})), says("ok")], name="sleeper")
    first = processes.controller()
    processes.worker()
    await stage.task()
    await stage.task("asleep", agent="sleeper")
    await stage.until_phase("one", "Waiting")
    await stage.until_phase("asleep", "Waiting")
    first.kill9()
    approve("one-1")

    def is_event_source(request: SeenRequest) -> bool:
        ours = request.path.endswith(("/auratasks", "/auraapprovals")) and request.method == "GET"
        return ours and "limit" not in request.query  # a resync lists in pages

    events = proxy.proxy.add(CutBefore(), is_event_source)
    kubeconfig = through(proxy, processes.controller_kubeconfig)
    processes.controller(first.name, pod_uid=first.pod_uid, kubeconfig=kubeconfig)
    await stage.done()
    await stage.done("asleep")
    assert events.matched > 0, "it never tried to watch"
    assert not any(exchange.status for exchange in proxy.proxy.seen(is_event_source)), "an event came through"
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(33)
async def test_a_finished_task_goes_after_its_ttl_with_what_it_owned(stage: Stage, processes: Processes) -> None:
    await stage.agent([calls(("led__read", {"key": "a", "bytes": 9000})), says("ok")])
    processes.controller()
    processes.worker()
    await stage.task(ttlSecondsAfterFinished=1)
    await stage.task("kept")
    await stage.done("kept")
    await gone(stage, "one")

    async def no_payloads() -> bool:
        return not any(item["metadata"]["name"].startswith("one-") for item in await stage.checkpoints())

    await until(no_payloads, "end of its payloads")
    assert (await stage.status("kept"))["phase"] == "Succeeded"


@pytest.mark.behaviour(33)
async def test_a_ttl_deletes_no_task_with_an_unresolved_effect(
    stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    rule = {"match": "led__once", "timeoutSeconds": 1, "onInDoubt": "Fail"}
    await stage.agent([calls(("led__once", {"key": "pay", "hang": True})), says("never")], tools=[rule])
    controller = processes.controller()
    processes.worker()
    await stage.task(ttlSecondsAfterFinished=1)
    await stage.until_phase("one", "Failed")
    await until(lambda: controller.logged("not deleted after its TTL"), "refusal of the deletion")
    assert [effect["tool"] for effect in (await stage.status())["unresolved"]] == ["led__once"]
