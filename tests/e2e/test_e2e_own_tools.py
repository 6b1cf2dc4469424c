"""A worker with tools that are no MCP servers, as docs/extending.md has it: the page's own program, run as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hack.rig.processes import Started
from tests.processes import Processes
from tests.stage import Stage, calls

ROOT = Path(__file__).parents[2]
MINE = [{"match": "mine__*", "effect": "Once", "approval": "NotRequired"}]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    page = (ROOT / "docs" / "extending.md").read_text()
    (source,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "worker_command(" in block]
    program = tmp_path / "my_worker.py"
    program.write_text(source)
    return program


async def test_a_task_runs_with_the_tools_of_a_worker_that_was_made_of_the_documentation(
    stage: Stage, processes: Processes, program: Path
) -> None:
    def launch(arguments: Sequence[str], log: Path) -> Started:
        verb, *options = arguments
        assert verb == "worker"
        with log.open("wb") as output:
            return subprocess.Popen([sys.executable, str(program), *options], stdout=output, stderr=output)

    processes.controller()
    processes.launch = launch
    worker = processes.worker()
    await stage.agent([calls(("mine__echo", {"text": "hi"})), {"echo": True}], mcpServers=[], tools=MINE)
    await stage.task()
    assert 'mine__echo got {"text": "hi"}' in (await stage.done())["result"]["text"]
    assert worker.terminate() == 0
