"""The owner dies in the middle of a turn: what its closed calls returned is found again, and none is made anew."""

from __future__ import annotations

from typing import Any

import pytest

from aura_operator.testing.ledger import Ledger
from tests.e2e.kept import KEPT, KEPT_NAMES
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, started


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
