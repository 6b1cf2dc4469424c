"""A turn that is half done goes on elsewhere with what its closed calls returned, wherever those results are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aura_operator.testing.ledger import Ledger
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, started

LARGE = {"key": "r", "bytes": 6000}  # beyond what a journal line holds
KEPT = [({"key": "r"}, {}), (LARGE, {}), ({"key": "r"}, {"sensitive": True}), (LARGE, {"sensitive": True})]
KEPT_NAMES = ["inline", "large", "sensitive", "large and sensitive"]


@pytest.mark.behaviour(22, 40)
@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(("read", "rule"), KEPT, ids=KEPT_NAMES)
async def test_a_decision_finds_the_results_that_came_before_the_wait(
    read: dict[str, Any], rule: dict[str, Any], stage: Stage, approve: Callable[..., None]
) -> None:
    await stage.agent(
        [calls(("led__read", read), ("led__once", {"key": "o"})), ECHO],
        tools=[{"match": "led__once", "approval": "Required"}, {"match": "led__read", "effect": "Read", **rule}],
    )
    await stage.task()
    await stage.until_phase("one", "Waiting")
    approve("one-2")
    text = (await stage.done())["result"]["text"]
    assert "once o: done" in text and ("read r: done" in text or "0123456789abcde" in text)


@pytest.mark.behaviour(40)
@pytest.mark.parametrize(("read", "rule"), KEPT, ids=KEPT_NAMES)
async def test_a_takeover_finds_the_results_of_the_dead_owner(
    read: dict[str, Any], rule: dict[str, Any], stage: Stage, processes: Processes, ledger: Ledger
) -> None:
    """The read is done and written with the intent of the call beside it, in which the owner dies."""
    step = calls(("led__read", read), ("led__idempotent", {"key": "i", "seconds": 60}))
    await stage.agent([step, ECHO], tools=[{"match": "led__read", "effect": "Read", **rule}])
    processes.controller()
    worker = processes.worker()
    await stage.task()
    await started(ledger, "idempotent")
    await stage.until("one", lambda status: status["progress"]["steps"] == 2, "at its second step")
    worker.kill9()
    processes.worker()
    await started(ledger, "idempotent", count=2)
    assert (await stage.status())["phase"] == "Running"
    assert len(ledger.starts("read")) == 1, "a result that is written is not read again"
