"""Watches that break, answers that are lost, requests that arrive late: no wake-up is missed, nothing runs twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aura_operator.core.entries import Intent, ModelAnswered
from aura_operator.store.approvals import approval_view
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.proxy_rules import (
    Action,
    Answer,
    CutBefore,
    Delay,
    ExpireWatch,
    HoldAnswer,
    SeenRequest,
    SwallowAnswer,
)
from aura_operator.testing.proxy_thread import ProxyThread
from tests.processes import Processes
from tests.stage import APPROVER, Stage, calls, says

TASKS = 4
RULES = [{"match": "led__once", "effect": "Once", "approval": "Required"}]
SCRIPT = [
    calls(("led__read", {"key": "r"}), ("led__idempotent", {"key": "i"})),
    calls(("sleep", {"seconds": 2.5})),
    calls(("led__once", {"key": "o"})),
    says("ok"),
]


@pytest.fixture
def proxied(processes: Processes, proxy: ProxyThread, through: Callable[[ProxyThread, Path], Path]) -> ProxyThread:
    """A controller and two workers, all behind the proxy."""
    processes.controller(kubeconfig=through(proxy, processes.controller_kubeconfig))
    for _ in range(2):
        processes.worker(kubeconfig=through(proxy, processes.worker_kubeconfig))
    return proxy


async def all_done(stage: Stage, ledger: Ledger, approve: Callable[..., None], meanwhile: Callable[[], Any]) -> None:
    """Runs some tasks through a sleep and an approval each, and checks what was done how often."""
    await stage.agent(SCRIPT, tools=RULES)
    names = [f"task-{number}" for number in range(TASKS)]
    for name in names:
        await stage.task(name)
    approved: set[str] = set()
    async with asyncio.timeout(60):
        while {(await stage.status(name))["phase"] for name in names} != {"Succeeded"}:
            meanwhile()
            for approval in map(approval_view, await stage.approvals()):
                if approval.ref.name not in approved and approval.phase == "Pending":
                    assert approval.request.kind.value == "ToolCall", approval.manifest
                    await asyncio.to_thread(approve, approval.ref.name, by=APPROVER)
                    approved.add(approval.ref.name)
            await asyncio.sleep(0.1)
    for name in names:
        run = (await stage.status(name))["run"]
        for tool in ("read", "idempotent", "once"):
            assert len([line for line in ledger.starts(tool) if line.run == run]) == 1, f"{tool} of {name}"
        entries = await stage.entries(name)
        assert len([entry for entry in entries if isinstance(entry, ModelAnswered)]) == 4
        assert len([entry for entry in entries if isinstance(entry, Intent)]) == 2


@pytest.mark.behaviour(10)
async def test_watches_that_are_cut_again_and_again_miss_no_wake_up(
    stage: Stage, proxied: ProxyThread, ledger: Ledger, approve: Callable[..., None]
) -> None:
    cut = 0

    def cut_all() -> None:
        nonlocal cut

        async def now() -> int:
            return proxied.proxy.cut_watches(lambda request: True)

        cut += proxied.run(now())

    await all_done(stage, ledger, approve, cut_all)
    assert cut > 20


@pytest.mark.behaviour(10)
async def test_watches_that_end_with_410_after_each_event_miss_no_wake_up(
    stage: Stage, proxied: ProxyThread, ledger: Ledger, approve: Callable[..., None]
) -> None:
    expired = 0
    forgotten: set[tuple[str, str, str]] = set()

    async def forgetful(request: SeenRequest) -> Action | None:
        """Forgets the past after each event: what a watcher lists anew, which replays all as ADDED, it may watch."""
        nonlocal expired
        selectors = (request.query.get("fieldSelector", ""), request.query.get("labelSelector", ""))
        if request.method != "GET" or "/leases/" in request.path:
            return None
        if not request.is_watch:
            forgotten.discard((request.path, *selectors))
            return None
        expired += 1
        if (request.path, *selectors) in forgotten:
            return Answer(status=410)
        forgotten.add((request.path, *selectors))
        return ExpireWatch(after_events=1)

    async def cut() -> int:
        return proxied.proxy.cut_watches(lambda request: True)

    proxied.proxy.before = forgetful
    proxied.run(cut())
    await all_done(stage, ledger, approve, lambda: None)
    assert expired > 10


@pytest.mark.behaviour(11)
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(SwallowAnswer(), id="the answer is lost"),
        pytest.param(CutBefore(), id="the request is lost"),
        pytest.param(Answer(status=503), id="503"),
        pytest.param(Answer(status=429, retry_after_seconds=1), id="429"),
    ],
)
async def test_a_write_that_fails_every_other_time_is_neither_lost_nor_repeated(
    fault: Action, stage: Stage, proxied: ProxyThread, ledger: Ledger, approve: Callable[..., None]
) -> None:
    hit = 0

    async def every_other(request: SeenRequest) -> Action | None:
        nonlocal hit
        if request.method not in ("PATCH", "POST") or "/leases" in request.path:
            return None
        hit += 1
        return fault if hit % 2 else None

    proxied.proxy.before = every_other
    await all_done(stage, ledger, approve, lambda: None)
    assert hit > 40


@pytest.mark.behaviour(11)
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(HoldAnswer(), id="applied, and never answered"),
        pytest.param(Delay(seconds=7), id="applied after its sender gave up"),
    ],
)
async def test_a_write_whose_answer_comes_too_late_is_neither_lost_nor_repeated(
    fault: Action, stage: Stage, proxied: ProxyThread, ledger: Ledger, approve: Callable[..., None]
) -> None:
    seen: set[str] = set()

    async def first_of_its_kind(request: SeenRequest) -> Action | None:
        """The first append of an intent, and the first write into each phase."""
        if request.method != "PATCH" or "/auratasks/" not in request.path:
            return None
        written = {op["path"]: op.get("value") for op in request.json if op["op"] != "test"}
        kind = str(written.get("/status/phase", "append"))
        if kind in seen or (kind == "append" and b"intent" not in request.body):
            return None
        seen.add(kind)
        return fault

    proxied.proxy.before = first_of_its_kind
    await all_done(stage, ledger, approve, lambda: None)
    assert seen == {"append", "Running", "Waiting", "Pending", "Succeeded"}
