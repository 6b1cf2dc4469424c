"""One owner: what lost its task while it was frozen, or in the network, changes nothing any more."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from aura_operator.core.entries import Claimed
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.ledger_process import running_ledger
from aura_operator.testing.proxy_rules import SeenRequest
from aura_operator.testing.proxy_thread import ProxyThread
from tests.e2e.relay import relay
from tests.processes import Processes
from tests.stage import Stage, calls, says, until


@pytest.mark.behaviour(7)
async def test_a_worker_frozen_past_its_lease_writes_nothing_and_starts_nothing_when_it_thaws(
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    proxy: ProxyThread,
    through: Callable[[ProxyThread, Path], Path],
    approve: Callable[..., None],
) -> None:
    # One task is frozen between its durable intent and the call, the other in the middle of a model call.
    await stage.agent([calls(("led__once", {"key": "pay"})), says("ok")], name="payer")
    await stage.agent([says("", calls=[], delay_seconds=6.0), says("ok")], name="thinker")
    processes.controller()
    old = processes.worker(kubeconfig=through(proxy, processes.worker_kubeconfig))
    await stage.task("think", agent="thinker")
    await stage.until_phase("think", "Running")

    async def freeze_at_the_intent(request: SeenRequest, status: int) -> None:
        if old.running and b'\\"k\\":\\"intent\\"' in request.body:
            os.kill(old.pid, signal.SIGSTOP)

    proxy.proxy.after = freeze_at_the_intent
    await stage.task("pay", agent="payer")
    await stage.until("pay", lambda status: status.get("unresolved"), "with an intent")
    new = processes.worker()
    for task in ("pay", "think"):
        status = await stage.until(task, lambda status: status["epoch"] == 2, "taken over")
        assert status["lastEnd"]["proof"] == "LeaseExpired"
    doubt = await stage.approval("pay-1")
    assert doubt["spec"]["request"]["kind"] == "InDoubt"
    assert ledger.starts() == ()
    seen_before = len(proxy.proxy.log)
    old.signal(signal.SIGCONT)
    given_up = ("task lost", "task deleted or taken over; stopping it")

    def noticed() -> bool:
        tasks = {str(line["task"]).rpartition("/")[2] for event in given_up for line in old.logged(event)}
        return tasks == {"pay", "think"}

    await until(noticed, "sign that the old owner gave both up")
    accepted = [
        exchange.request.path
        for exchange in proxy.proxy.log[seen_before:]
        if exchange.request.method in ("PATCH", "POST", "PUT", "DELETE")
        and (exchange.status or 500) < 300
        and "/leases/" not in exchange.request.path
    ]
    assert accepted == [], "the frozen owner wrote something"
    # From here on it may claim again what becomes free, as a worker like any other.
    approve("pay-1", choice="Abort", reason="enough")
    await stage.until_phase("pay", "Failed")
    await stage.done("think")
    assert ledger.starts() == (), "the frozen owner made its call"
    for task in ("pay", "think"):
        claims = [entry for entry in await stage.entries(task) if isinstance(entry, Claimed)]
        assert {claim.worker for claim in claims} == {old.name, new.name}
    assert old.running, "it goes on with other tasks"


@pytest.mark.behaviour(7)
async def test_a_call_that_arrives_after_its_owner_lost_the_task_is_refused_by_a_server_that_checks(
    stage: Stage, processes: Processes, tmp_path: Path
) -> None:
    with running_ledger(tmp_path / "ledger.jsonl", "--check-epoch") as server:
        async with relay(server.url, b'"tools/call"') as late:
            slow = {"name": "led", "transport": "StreamableHTTP", "url": late.url}
            await stage.agent([calls(("led__idempotent", {"key": "scale"})), says("ok")], mcpServers=[slow])
            await stage.task()
            processes.controller()
            first = processes.worker()
            async with asyncio.timeout(20):
                await late.owned.wait()
            first.kill9()
            processes.worker(first.name, pod_uid=first.pod_uid)
            await stage.done()
            assert [line.epoch for line in server.ledger.starts()] == [2]
            late.release.set()
            await until(lambda: server.ledger.phase("refused"), "refusal of the late call")
            assert [line.epoch for line in server.ledger.phase("refused")] == [1]
            assert [line.epoch for line in server.ledger.starts()] == [2]
