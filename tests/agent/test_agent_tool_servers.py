"""Servers that are away, come back, freeze, or were never there; and child processes that end when they should."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.core.effects import ToolHints
from aura_operator.core.entries import Outcome
from aura_operator.errors import ToolServerError
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.ledger_process import RunningLedger
from hack.rig.waiting import until
from tests.agent.desk import ROOT, Desk, http_spec, stdio_spec


@pytest.fixture(params=["http", "older"])
def server(request: pytest.FixtureRequest) -> RunningLedger:
    ledger: RunningLedger = request.getfixturevalue(f"{request.param}_ledger")
    return ledger


@pytest.fixture
async def desk(server: RunningLedger) -> AsyncIterator[Desk]:
    toolbox = Toolbox((http_spec(server.url, timeout_seconds=2.0),))
    try:
        await toolbox.start()
        yield Desk(toolbox=toolbox, ledger=server.ledger)
    finally:
        await toolbox.aclose()


async def test_a_restart_between_two_calls_goes_unnoticed(server: RunningLedger, desk: Desk) -> None:
    await desk.call("once", key="before")
    server.kill()
    server.start()

    outcome = await desk.call("once", key="after")

    assert outcome.status is Outcome.OK
    assert [line.key for line in server.ledger.starts()] == ["before", "after"]


async def test_a_call_to_a_server_that_is_away_is_certainly_not_sent(server: RunningLedger, desk: Desk) -> None:
    server.kill()

    outcome = await desk.call("once", key="away")

    assert outcome.status is Outcome.NOT_SENT
    assert server.url in outcome.text and "check that it runs" in outcome.text
    server.start()
    assert (await desk.call("once", key="back")).status is Outcome.OK
    assert server.ledger.starts(key="away") == ()


@pytest.mark.behaviour(29)
async def test_a_frozen_server_holds_nobody_and_what_was_not_sent_never_is(server: RunningLedger, desk: Desk) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    begun = time.monotonic()
    outcomes = [await desk.call("once", key=f"frozen-{number}", timeout_seconds=0.5) for number in range(3)]
    assert time.monotonic() - begun < 3.0

    os.kill(server.pid, signal.SIGCONT)
    assert (await desk.call("once", key="thawed")).status is Outcome.OK
    sent = {line.key for line in server.ledger.starts()}
    for number, outcome in enumerate(outcomes):
        assert outcome.status in (Outcome.UNKNOWN, Outcome.NOT_SENT)
        if outcome.status is Outcome.NOT_SENT:
            assert f"frozen-{number}" not in sent


async def test_one_call_in_trouble_does_not_disturb_another(server: RunningLedger, desk: Desk) -> None:
    steady = asyncio.create_task(desk.call("read", key="steady", seconds=1.5))
    await until(lambda: server.ledger.starts(key="steady"), "call")

    hanging = await desk.call("once", key="hanging", hang=True, timeout_seconds=0.3)

    assert hanging.status is Outcome.UNKNOWN
    assert (await steady).status is Outcome.OK


@pytest.mark.behaviour(29)
async def test_an_unreachable_server_is_named_with_the_remedy() -> None:
    toolbox = Toolbox((http_spec("http://127.0.0.1:9/mcp", timeout_seconds=2.0),))
    with pytest.raises(ToolServerError) as caught:
        await toolbox.start()
    await toolbox.aclose()

    assert "'ledger' at http://127.0.0.1:9/mcp" in str(caught.value)
    assert "check that it runs" in str(caught.value)


@pytest.mark.behaviour(29)
async def test_a_server_that_accepts_and_says_nothing_is_given_up_within_its_time() -> None:
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    toolbox = Toolbox((http_spec(f"http://127.0.0.1:{port}/mcp", timeout_seconds=0.5),))
    begun = time.monotonic()
    with pytest.raises(ToolServerError, match="can't be used"):
        await toolbox.start()
    assert time.monotonic() - begun < 3.0
    await toolbox.aclose()
    silent.close()


@pytest.mark.behaviour(29)
async def test_a_command_that_is_not_there_is_named() -> None:
    toolbox = Toolbox((stdio_spec(Path("unused"), command="no-such-command"),))
    with pytest.raises(ToolServerError, match="'ledger' at no-such-command can't be used"):
        await toolbox.start()
    await toolbox.aclose()


async def test_the_last_words_of_a_child_that_dies_at_once_are_told() -> None:
    dying = stdio_spec(Path("unused"), args=("-c", "import sys; sys.exit('no licence')"))
    toolbox = Toolbox((dying,))
    with pytest.raises(ToolServerError, match="no licence"):
        await toolbox.start()
    await toolbox.aclose()


async def test_a_child_that_died_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    toolbox = Toolbox((stdio_spec(ledger.path),))
    try:
        await toolbox.start()
        desk = Desk(toolbox=toolbox, ledger=ledger)
        (first,) = _servers_of(ledger.path)
        os.kill(first, signal.SIGKILL)
        # Reaped, that is: a process that is still dying keeps its pipes open, and what is written there is in doubt.
        await until(lambda: not Path(f"/proc/{first}").exists(), "end of the first server")
        assert (await desk.call("once")).status is Outcome.OK
    finally:
        await toolbox.aclose()


@pytest.mark.parametrize("frozen", [False, True])
async def test_children_are_gone_after_close(tmp_path: Path, frozen: bool) -> None:
    path = tmp_path / "ledger.jsonl"
    toolbox = Toolbox((stdio_spec(path),))
    await toolbox.start()
    (child,) = _servers_of(path)
    if frozen:
        os.kill(child, signal.SIGSTOP)

    await toolbox.aclose()

    assert not _servers_of(path)


async def test_a_child_has_only_what_its_agent_declares_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKER_TOKEN", "of-the-worker")
    path = tmp_path / "ledger.jsonl"
    spec = stdio_spec(path)
    toolbox = Toolbox((stdio_spec(path, env={**spec.env, "TENANT": "a"}),))
    try:
        await toolbox.start()
        (child,) = _servers_of(path)
        names = {entry.partition("=")[0] for entry in Path(f"/proc/{child}/environ").read_text().split("\0") if entry}
    finally:
        await toolbox.aclose()

    assert names <= {"PATH", "HOME", "PYTHONPATH", "TENANT"} and "TENANT" in names


async def test_a_child_does_not_outlive_a_worker_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    program = f"""
import asyncio, sys
from pathlib import Path
from aura_operator.agent.mcp.toolbox import Toolbox
from tests.agent.desk import stdio_spec
async def main():
    await Toolbox((stdio_spec(Path({str(path)!r})),)).start()
    print("ready", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    worker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT)
    assert worker.stdout is not None
    try:
        assert await asyncio.to_thread(worker.stdout.readline) == b"ready\n"
        (child,) = _servers_of(path, but=worker.pid)
        os.kill(child, signal.SIGSTOP)  # so that the end of its input can't be what ends it
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()

    await until(lambda: not _servers_of(path), "end of the servers")


async def test_tools_carry_a_digest_of_their_schema_and_hints_only_where_they_are_trusted(
    http_ledger: RunningLedger,
) -> None:
    toolbox = Toolbox((http_spec(http_ledger.url, name="a", trust_hints=True), http_spec(http_ledger.url, name="b")))
    try:
        await toolbox.start()
        tools = toolbox.tools
    finally:
        await toolbox.aclose()

    assert tools["a__read"].hints == ToolHints(read_only=True)
    assert tools["a__idempotent"].hints == ToolHints(idempotent=True)
    assert tools["a__once"].hints == ToolHints()
    assert tools["b__read"].hints is None
    digests = {tool.schema_digest for tool in tools.values()}
    assert len(digests) == len(tools)
    assert all(digest.startswith("sha256:") and len(digest) == 71 for digest in digests)


@pytest.mark.behaviour(32)
async def test_secrets_of_headers_never_come_back(http_ledger: RunningLedger) -> None:
    token = "hunter2-and-more"
    toolbox = Toolbox((http_spec(http_ledger.url, headers={"authorization": f"Bearer {token}"}),))
    desk = Desk(toolbox=toolbox, ledger=http_ledger.ledger)
    try:
        await toolbox.start()
        outcome = await desk.call("read", text=json.dumps({"log": f"GET / with {token}"}))
        http_ledger.kill()
        gone = await desk.call("read", key=token)
    finally:
        await toolbox.aclose()

    assert outcome.text == '{"log": "GET / with [redacted]"}'
    assert token not in gone.text


def _servers_of(ledger: Path, but: int = 0) -> list[int]:
    """The processes that serve this ledger."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            alive = "\nState:\tZ" not in (process / "status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if alive and int(process.name) != but and str(ledger).encode() in command:
            found.append(int(process.name))
    return found
