"""kill -9 at every write of a task, found by counting them: the task finishes, and no `Once` effect happens twice.

The proxy sees each request of the worker; the kill comes before a request reaches the API server, or after it was
carried out and before its answer arrives.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from aura_operator.store.approvals import approval_view
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.proxy_rules import Action, CutBefore, SeenRequest
from aura_operator.testing.proxy_thread import ProxyThread
from hack.rig.waiting import NotInTimeError
from tests.processes import Process, Processes
from tests.stage import APPROVER, POLL_SECONDS, Stage, calls, says

TOOLS = ("read", "idempotent", "once", "approved")
RULES = [
    {"match": "led__once", "effect": "Once", "approval": "NotRequired"},
    {"match": "led__schema_violation", "effect": "Once", "approval": "Required"},
]
MOST_WRITES = 60


@dataclass(kw_only=True)
class Killer:
    """Kills the worker at one write of one task, and remembers which it was."""

    proxy: ProxyThread
    task: str = ""
    at: int = 0
    moment: str = ""
    pid: int = 0
    seen: int = 0
    target: int = 0
    killed_at: str = ""

    def arm(self, task: str, pid: int, at: int, moment: str) -> None:
        self.task, self.pid, self.at, self.moment = task, pid, at, moment
        self.seen, self.target, self.killed_at = 0, 0, ""

    def _counts(self, request: SeenRequest) -> bool:
        if request.method not in ("PATCH", "POST") or not self.task:
            return False
        return (
            request.path.endswith("/controllerrevisions") or self.task.encode() in request.path.encode() + request.body
        )

    async def before(self, request: SeenRequest) -> Action | None:
        if not self._counts(request):
            return None
        self.seen += 1
        if self.seen != self.at:
            return None
        self.target = request.number  # its answer may come after those of later ones
        if self.moment == "after":
            return None
        self._kill(request)
        return CutBefore()

    async def after(self, request: SeenRequest, status: int) -> None:
        if self.moment == "after" and request.number == self.target:
            self._kill(request)

    def _kill(self, request: SeenRequest) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.killed_at = f"write {self.at} ({request.method} {request.path.rpartition('/namespaces/')[2]})"


async def finished(stage: Stage, task: str, approve: Callable[..., None], worker: Callable[[], None]) -> set[str]:
    """Answers whatever is asked until the task has succeeded; the kinds that were asked. Restarts a dead worker."""
    asked: set[str] = set()
    answered: set[str] = set()
    deadline = time.monotonic() + 40
    while (status := await stage.status(task))["phase"] not in ("Succeeded", "Failed", "Cancelled"):
        assert time.monotonic() < deadline, status
        worker()
        for approval in map(approval_view, await stage.approvals()):
            name, request = approval.ref.name, approval.request
            if request.task != task or approval.phase != "Pending" or name in answered:
                continue
            asked.add(request.kind.value)
            choice = {"choice": "Done"} if request.kind.value == "InDoubt" else {}
            await asyncio.to_thread(approve, name, by=APPROVER, reason="ok", **choice)
            answered.add(name)
        await asyncio.sleep(POLL_SECONDS)
    assert status["phase"] == "Succeeded", status
    assert status["unresolved"] == []
    return asked


def held(ledger: Ledger, run: str, asked: set[str]) -> None:
    """What the ledger must say of a run, wherever its worker was killed."""
    starts = {tool: [line for line in ledger.starts(tool) if line.run == run] for tool in TOOLS[:3]}
    approved = [line for line in ledger.starts("schema_violation") if line.run == run]
    assert len(starts["read"]) >= 1
    assert len(starts["idempotent"]) >= 1
    assert len({line.idempotency_key for line in starts["idempotent"]}) == 1
    for effects in (starts["once"], approved):
        assert len(effects) <= 1, "a Once effect happened twice for one permission"
        assert effects or "InDoubt" in asked, "a Once effect didn't happen, and nobody was asked about it"


SCRIPT = [
    calls(("led__read", {"key": "r"})),
    calls(("led__idempotent", {"key": "i"})),
    calls(("led__once", {"key": "o"})),
    calls(("led__schema_violation", {"key": "a"})),
    says("ok"),
]


@pytest.mark.behaviour(2)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_kill_at_any_write_loses_nothing_and_doubles_nothing(
    moment: str,
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    proxy: ProxyThread,
    through: Callable[[ProxyThread, Path], Path],
    approve: Callable[..., None],
) -> None:
    await stage.agent(SCRIPT, tools=RULES)
    processes.controller()
    killer = Killer(proxy=proxy)
    proxy.proxy.before, proxy.proxy.after = killer.before, killer.after
    kubeconfig = through(proxy, processes.worker_kubeconfig)
    worker = processes.worker(kubeconfig=kubeconfig)

    def again() -> None:
        nonlocal worker
        if killer.killed_at and worker.pid == killer.pid:
            worker.popen.wait(timeout=10)  # a process that was just killed may still be seen for a moment
            worker = processes.worker(worker.name, pod_uid=worker.pod_uid, kubeconfig=kubeconfig)

    points: list[str] = []
    for number in range(1, MOST_WRITES):
        task = f"t{number:02}e"
        killer.arm(task, worker.pid, number, moment)
        await stage.task(task)
        try:
            asked = await finished(stage, task, approve, again)
            held(ledger, (await stage.status(task))["run"], asked)
        except (AssertionError, NotInTimeError) as error:
            error.add_note(f"the worker was killed {moment} {killer.killed_at or 'nothing'}; before that: {points}")
            raise
        if not killer.killed_at:
            break
        points.append(killer.killed_at)
        again()
    assert len(points) >= 12, points
    for what in ("auratasks/", "auraapprovals", "controllerrevisions"):
        assert any(what in point for point in points), f"no kill at a write of {what}: {points}"


@pytest.mark.behaviour(2, 3, 4)
async def test_a_kill_around_each_call_loses_nothing_and_doubles_nothing(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None]
) -> None:
    slow = [
        {**step, "calls": [{**call, "args": {**call["args"], "seconds": 0.3}} for call in step.get("calls", ())]}
        for step in SCRIPT[:-1]
    ]
    await stage.agent([*slow, SCRIPT[-1]], tools=RULES)
    processes.controller()
    worker = processes.worker()
    for tool in ("read", "idempotent", "once", "schema_violation"):
        for phase in ("start", "end"):
            task = f"{tool.replace('_', '-')}-{phase}"
            await stage.task(task)
            watching = asyncio.create_task(_kill_at(stage, ledger, task, tool, phase, worker))

            def again() -> None:
                nonlocal worker
                if not worker.running:
                    worker = processes.worker(worker.name, pod_uid=worker.pod_uid)

            try:
                asked = await finished(stage, task, approve, again)
                held(ledger, (await stage.status(task))["run"], asked)
            except (AssertionError, NotInTimeError) as error:
                error.add_note(f"the worker was killed when the ledger saw the {phase} of {tool}")
                raise
            await watching
            again()


async def _kill_at(stage: Stage, ledger: Ledger, task: str, tool: str, phase: str, worker: Process) -> None:
    run = (await stage.until(task, lambda status: status.get("run"), "claimed"))["run"]
    while not any(line.run == run for line in ledger.phase(phase, tool)):
        await asyncio.sleep(0.002)
    worker.kill9()
