"""Workers that die in the middle of a call, and their next lives. Owns no assertion."""

from __future__ import annotations

from typing import Any

from aura_operator.testing.ledger import Ledger
from tests.processes import Process, Processes
from tests.stage import ECHO, Stage, calls, started

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
