"""What becomes of a tool call, over HTTP of both generations and over stdio. The ledger says what really happened."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.core.entries import Outcome
from aura_operator.errors import FencedError
from aura_operator.testing.ledger import Ledger
from hack.rig.waiting import until
from tests.agent.desk import Desk, at_once, stdio_spec, tool_call


async def test_a_call_reaches_the_server_once_with_run_epoch_and_key(desk: Desk) -> None:
    outcome = await desk.call("once", text="moved")

    assert (outcome.status, outcome.text, outcome.size_bytes) == (Outcome.OK, "moved", 5)
    (line,) = desk.ledger.starts("once", "k")
    assert (line.run, line.epoch, line.idempotency_key) == ("run-1", 3, "run-1/1/abc")
    assert line.arguments == {"key": "k", "text": "moved"}


async def test_a_call_refused_at_the_last_moment_is_not_sent_and_the_reason_passes_through(desk: Desk) -> None:
    async def fenced() -> None:
        raise FencedError("this worker lost the task")

    with pytest.raises(FencedError, match="lost the task"):
        await desk.call("once", before_send=fenced)

    await desk.call("read")  # the connection is as good as before
    assert [line.tool for line in desk.ledger.starts()] == ["read"]


async def test_the_last_check_comes_before_the_server_sees_anything(desk: Desk) -> None:
    seen_at_check: list[int] = []

    async def look() -> None:
        await asyncio.sleep(0.1)  # long enough for a request that was already out to be written down
        seen_at_check.append(len(desk.ledger.lines))

    await desk.call("once", before_send=look)

    assert seen_at_check == [0]


async def test_a_tool_that_fails_is_an_error_with_its_words(desk: Desk) -> None:
    outcome = await desk.call("once", fail=True)

    assert outcome.status is Outcome.ERROR
    assert outcome.text == "once of k failed as asked"


async def test_a_result_that_breaks_its_schema_is_told_and_not_raised(desk: Desk) -> None:
    outcome = await desk.call("schema_violation")

    assert outcome.status is Outcome.ERROR
    assert "the tool ran" in outcome.text and "count" in outcome.text and "three" in outcome.text
    assert len(desk.ledger.phase("end")) == 1


@pytest.mark.behaviour(29)
async def test_a_tool_that_hangs_is_unknown_when_its_time_is_up_and_is_asked_to_stop(desk: Desk) -> None:
    begun = time.monotonic()
    outcome = await desk.call("once", hang=True, timeout_seconds=0.5)

    assert outcome.status is Outcome.UNKNOWN
    assert "may or may not have happened" in outcome.text
    assert time.monotonic() - begun < 2.0
    await until(lambda: desk.ledger.phase("cancelled", "once", "k"), "cancelled call")


async def test_a_cancelled_call_asks_the_server_to_stop(desk: Desk) -> None:
    call = asyncio.create_task(desk.call("once", hang=True))
    await until(lambda: desk.ledger.starts("once", "k"), "call")

    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: desk.ledger.phase("cancelled", "once", "k"), "cancelled call")


async def test_a_server_that_dies_in_a_call_leaves_the_call_unknown(desk: Desk) -> None:
    outcome = await desk.call("once", crash=True)

    assert outcome.status is Outcome.UNKNOWN
    assert "may or may not have happened" in outcome.text
    assert [line.phase for line in desk.ledger.lines] == ["start"]


async def test_calls_run_side_by_side(desk: Desk) -> None:
    begun = time.monotonic()

    outcomes = await asyncio.gather(*(desk.call("read", seconds=0.5, key=str(number)) for number in range(8)))

    assert {outcome.status for outcome in outcomes} == {Outcome.OK}
    assert time.monotonic() - begun < 3.0  # one after the other they would take four seconds


@pytest.mark.behaviour(29)
async def test_fifty_megabytes_are_cut_with_a_mark_that_tells_the_size(desk: Desk) -> None:
    begun = time.monotonic()

    outcome = await desk.call("read", bytes=50_000_000, limit_bytes=10_000, timeout_seconds=60)

    assert outcome.status is Outcome.OK
    assert outcome.size_bytes == 50_000_000
    assert len(outcome.text.encode()) <= 10_000
    assert outcome.text.startswith("0123456789abcde\n") and "50000000 bytes" in outcome.text
    assert time.monotonic() - begun < 30.0


@pytest.mark.parametrize("desk", ["http"], indirect=True)  # no transport is concerned
@pytest.mark.behaviour(29)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{not json", "not JSON"),
        ('{"key": NaN}', "NaN is no JSON value"),
        ('{"key": "k", "seconds": 1e400}', "1e400 is too large a number"),
        ('{"key": "shown", "key": "done"}', "'key' is given twice"),
        ('{"key": ' + "[" * 400 + "]" * 400 + "}", "more than 100 levels"),
        ('{"key": "\\ud83d"}', "surrogates not allowed"),
        ("[1]", "must be a JSON object"),
        ('{"key": 7}', "key: 7 is not of type 'string'"),
        ("{}", "'key' is a required property"),
        ("", "'key' is a required property"),
    ],
)
async def test_malformed_arguments_are_told_and_not_sent(desk: Desk, arguments: str, words: str) -> None:
    outcome = await desk.toolbox.call(tool_call("ledger__once", arguments), _never)

    assert outcome.status is Outcome.ERROR
    assert words in outcome.text
    assert desk.ledger.lines == ()


@pytest.mark.parametrize("desk", ["http"], indirect=True)  # no transport is concerned
@pytest.mark.behaviour(29)
async def test_an_unknown_tool_is_told_with_those_that_there_are(desk: Desk) -> None:
    outcome = await desk.toolbox.call(tool_call("ledger__twice"), _never)

    assert outcome.status is Outcome.ERROR
    assert "unknown tool 'ledger__twice'; there are: ledger__idempotent, ledger__once" in outcome.text


async def test_a_server_that_checks_the_epoch_refuses_a_stale_caller(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    spec = stdio_spec(ledger.path)
    toolbox = Toolbox((stdio_spec(ledger.path, args=(*spec.args, "--check-epoch")),))
    try:
        await toolbox.start()
        statuses = [await _call_with_epoch(toolbox, epoch) for epoch in (3, 4, 3)]
    finally:
        await toolbox.aclose()

    assert statuses == [Outcome.OK, Outcome.OK, Outcome.ERROR]
    assert [line.phase for line in ledger.lines] == ["start", "end", "start", "end", "refused"]


async def _call_with_epoch(toolbox: Toolbox, epoch: int) -> Outcome:
    meta = {"aura.mezmo.com/run": "run-1", "aura.mezmo.com/epoch": epoch}
    outcome = await toolbox.call(tool_call("ledger__once", '{"key": "k"}', meta=meta), at_once)
    return outcome.status


async def _never() -> None:
    raise AssertionError("this call must not get as far as being sent")
