"""Two versions side by side: what the newer wrote, the older leaves alone, and nothing fails for its version."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from aura_operator.core.codec import SCHEMA
from aura_operator.testing.ledger import Ledger
from tests.processes import Process, Processes
from tests.stage import ECHO, Stage, calls

LEFT_ALONE_SECONDS = 2.0  # an idle worker claims within milliseconds


def launch_next_version(arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Starts `aura` as tests/e2e/next_version.py makes it."""
    with log.open("wb") as output:
        command = [sys.executable, "-m", "tests.e2e.next_version", *arguments]
        return subprocess.Popen(command, stdout=output, stderr=output)


@pytest.fixture
def newer(processes: Processes) -> Processes:
    """As `processes`, of the next version; ended with them."""
    return replace(processes, launch=launch_next_version)


def killed(process: Process) -> None:
    process.kill9()


def rolled_back(process: Process) -> None:
    assert process.terminate() == 0


@pytest.mark.behaviour(14, 38, 48)
@pytest.mark.parametrize("ends", [killed, rolled_back])
async def test_the_older_version_leaves_a_journal_of_the_newer_one_alone(
    ends: Callable[[Process], None], stage: Stage, processes: Processes, newer: Processes, ledger: Ledger
) -> None:
    await stage.agent([calls(("led__read", {"key": "a"})), calls(("led__read", {"key": "b"}), delay_seconds=3), ECHO])
    processes.controller()
    older = processes.worker()
    await stage.task()
    status = await stage.until("one", lambda status: status.get("progress", {}).get("steps") == 2, "asking again")
    assert status["journal"]["schema"] == 1
    older.kill9()
    next_one = newer.worker()
    await stage.until("one", lambda status: status["journal"]["schema"] == SCHEMA + 1, "of the next schema")
    ends(next_one)

    older = processes.worker()
    status = await stage.until_phase("one", "Pending")
    epoch = status["epoch"]
    await stage.task("other", text="as ever")
    await stage.until("other", lambda status: status["epoch"] > 0, "taken")
    await asyncio.sleep(LEFT_ALONE_SECONDS)
    status = await stage.status()
    assert (status["phase"], status["epoch"]) == ("Pending", epoch), "the older worker took it"
    # Not before the newer worker counts as gone: until then it may take the task itself.
    await stage.until("one", lambda status: f"schema {SCHEMA + 1}" in status["summary"], "told what it waits for")
    assert older.running

    newer.worker()
    status = await stage.done()
    assert status["journal"]["schema"] == SCHEMA + 1
    reads = [line.key for line in ledger.starts("read") if line.run == status["run"]]
    assert reads == ["a", "b"], "what was recorded was not read again"
    assert older.running and not older.logged("a fault of this operator; please report it")
