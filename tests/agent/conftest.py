"""The ledger of each kind, and a toolbox over it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.ledger_process import RunningLedger, running_ledger
from tests.agent.desk import Desk, http_spec, stdio_spec


@pytest.fixture(scope="module")
def http_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLedger]:
    """One process for a module: starting one takes a second."""
    with running_ledger(tmp_path_factory.mktemp("ledger") / "http.jsonl") as server:
        yield server


@pytest.fixture(scope="module")
def older_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLedger]:
    """The same of an older server."""
    with running_ledger(tmp_path_factory.mktemp("ledger") / "older.jsonl", "--sessions") as server:
        yield server


@pytest.fixture
def http_ledger(http_process: RunningLedger) -> RunningLedger:
    """A ledger of today's protocol, where every call stands for itself; nothing is written in it yet."""
    return http_process.afresh()


@pytest.fixture
def older_ledger(older_process: RunningLedger) -> RunningLedger:
    """A ledger of the time before 2026, with sessions that a restart loses; nothing is written in it yet."""
    return older_process.afresh()


@pytest.fixture(params=["http", "older", "stdio"])
async def desk(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Desk]:
    """The same over each transport: what holds must hold on all of them."""
    if request.param == "stdio":
        ledger = Ledger(tmp_path / "stdio.jsonl")
        spec = stdio_spec(ledger.path)
    else:
        server: RunningLedger = request.getfixturevalue(f"{request.param}_ledger")
        ledger, spec = server.ledger, http_spec(server.url)
    toolbox = Toolbox((spec,))
    try:
        await toolbox.start()
        yield Desk(toolbox=toolbox, ledger=ledger)
    finally:
        await toolbox.aclose()
