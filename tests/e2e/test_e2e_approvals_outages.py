"""A decision counts although somebody who should act on it is away: workers, the controller, or both."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from aura_operator.core.instants import from_text
from aura_operator.testing.ledger import Ledger
from tests.e2e.toolserver import ToolServer
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, until

Rules = list[dict[str, Any]]


async def parked(stage: Stage, processes: Processes, rules: Rules, **agent: Any) -> dict[str, Any]:
    """A task that waits for an approval, with one worker and one controller up."""
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=rules, **agent)
    await stage.task()
    up = {"controller": processes.controller(), "worker": processes.worker()}
    await stage.until_phase("one", "Waiting")
    return up


@pytest.mark.behaviour(18)
@pytest.mark.parametrize("away", [("worker",), ("controller",), ("worker", "controller")], ids=" and ".join)
@pytest.mark.parametrize("end", ["kill9", "terminate"])
async def test_a_decision_made_while_somebody_is_away_takes_effect_once_when_he_is_back(
    away: tuple[str, ...],
    end: str,
    stage: Stage,
    processes: Processes,
    ledger: Ledger,
    approve: Callable[..., None],
    once_required: Rules,
) -> None:
    up = await parked(stage, processes, once_required)
    for component in away:
        getattr(up[component], end)()
    approve("one-1", reason="go ahead")
    if "controller" not in away:
        await stage.until_phase("one", "Pending")
    assert ledger.starts() == ()
    for component in away:
        gone = up[component]
        getattr(processes, component)(gone.name, pod_uid=gone.pod_uid)
    assert "once pay: done" in (await stage.done())["result"]["text"]
    assert len(ledger.starts("once")) == 1


@pytest.mark.behaviour(20)
async def test_a_decision_first_seen_too_late_has_no_effect_and_is_named(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    up = await parked(stage, processes, once_required, expires_after_seconds=4)
    up["controller"].kill9()
    expires = from_text((await stage.approval("one-1"))["spec"]["expiresAt"])
    approve("one-1", reason="in time, but nobody looked")
    await until(lambda: datetime.now(UTC).timestamp() > expires, "end of the approval's time")
    processes.controller(up["controller"].name, pod_uid=up["controller"].pod_uid)
    text = (await stage.done())["result"]["text"]
    status = (await stage.approval("one-1"))["status"]
    assert status["phase"] == "Expired"
    assert "votes that were there, or came too late: bob (yes)" in status["reason"]
    assert "led__once was not called" in text and status["reason"] in text
    assert ledger.starts() == ()


@pytest.mark.behaviour(17)
async def test_of_two_workers_that_could_resume_one_does(
    stage: Stage, processes: Processes, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=once_required)
    names = [f"task-{number}" for number in range(6)]
    controller, workers = processes.controller(), [processes.worker(), processes.worker()]
    for name in names:
        await stage.task(name)
    for name in names:
        await stage.until_phase(name, "Waiting")
    # Frozen while all is decided, both find everything to resume in the same instant.
    for worker in workers:
        worker.signal(signal.SIGSTOP)
    for name in names:
        approve(f"{name}-1")
    for name in names:
        await stage.until_phase(name, "Pending")
    for worker in workers:
        worker.signal(signal.SIGCONT)
    for name in names:
        assert (await stage.done(name))["epoch"] == 2
    runs = [line.run for line in ledger.starts("once")]
    assert len(runs) == len(set(runs)) == len(names)
    assert controller.running


@pytest.mark.behaviour(16)
async def test_a_tool_that_changed_is_noticed_by_a_worker_that_never_knew_the_old_one(
    stage: Stage, processes: Processes, toolserver: ToolServer, approve: Callable[..., None]
) -> None:
    served: dict[str, Any] = {
        "mcpServers": [{"name": "t", "transport": "StreamableHTTP", "url": toolserver.url}],
        "tools": [{"match": "t__act", "effect": "Once", "approval": "Required"}],
    }
    await stage.agent([calls(("t__act", {"key": "a"})), ECHO], **served)
    await stage.task()
    processes.controller()
    first = processes.worker()
    await stage.until_phase("one", "Waiting")
    first.terminate()
    toolserver.stop()
    toolserver.start(limit=2)
    approve("one-1")
    processes.worker()
    await stage.approval("one-1-r1")
    assert toolserver.bodies == []
    approve("one-1-r1")
    assert "acted under limit 2" in (await stage.done())["result"]["text"]
    assert len(toolserver.bodies) == 1
