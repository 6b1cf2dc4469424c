"""What was once broken by trying: each case was found by an attack on the running operator."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import pytest

from aura_operator.core.codec import SCHEMA
from aura_operator.core.instants import from_text
from aura_operator.store.resources import Manifest
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.ledger_process import RunningLedger
from tests.processes import Processes
from tests.stage import Stage, calls, says, started

pytestmark = pytest.mark.usefixtures("operator")


@pytest.mark.behaviour(29)
async def test_a_provider_that_asks_for_no_patience_doesnt_use_up_the_retries_at_once(
    stage: Stage, operator: Processes
) -> None:
    refused = {"text": "", "error": {"status": 429, "retry_after": 0}}
    await stage.agent([refused] * 2, model={"name": "scripted:test", "retries": 2, "settings": {"script": [refused]}})
    begun = time.monotonic()
    await stage.task()
    status = await stage.until_phase("one", "Failed")
    assert "(3 attempts)" in status["summary"]
    assert time.monotonic() - begun > 0.5 + 1.0  # the first two of the backoffs


@pytest.mark.behaviour(29)
@pytest.mark.parametrize("seconds", [30_000_000, 10_000_000_000_000])
async def test_a_provider_that_asks_for_patience_without_end_is_asked_again_within_the_hour(
    seconds: int, stage: Stage, operator: Processes
) -> None:
    await stage.agent([{"text": "", "error": {"status": 429, "retry_after": seconds}}, says("never")])
    await stage.task()
    status = await stage.until_phase("one", "Waiting", "Failed")
    (timer,) = status["waitingFor"]
    assert from_text(timer["until"]) <= time.time() + 3600


@pytest.mark.behaviour(29)
async def test_a_tool_server_that_is_away_is_not_said_to_be_the_model(stage: Stage) -> None:
    away = [{"name": "away", "transport": "StreamableHTTP", "url": "http://127.0.0.1:9/mcp"}]
    await stage.agent([says("never")], mcpServers=away)
    await stage.task()
    status = await stage.until_phase("one", "Waiting", "Failed")
    assert status["summary"].startswith("tool server error, again at ") and "'away'" in status["summary"]


@pytest.mark.behaviour(3)
async def test_an_effect_in_doubt_is_asked_about_also_where_another_task_has_its_number_in_its_name(
    stage: Stage, ledger: Ledger, approve: Callable[..., None]
) -> None:
    hangs = {"match": "led__once", "effect": "Once", "approval": "Required", "timeoutSeconds": 1}
    await stage.agent([calls(("led__once", {"key": "o", "hang": True})), says("ok")], tools=[hangs])
    await stage.task("fix-1")
    await stage.approval("fix-1-1")
    await stage.task("fix")
    await stage.approval("fix-1")
    approve("fix-1")
    await started(ledger, "once")
    status = await stage.until("fix", lambda status: status["phase"] == "Waiting" and status["unresolved"], "parked")
    doubt = await stage.approval(status["waitingFor"][0]["name"])
    assert doubt["spec"]["request"]["task"] == "fix"
    assert doubt["spec"]["request"]["kind"] == "InDoubt"


@pytest.mark.behaviour(3)
async def test_a_retry_that_cant_be_sent_doesnt_make_the_first_call_forgotten(
    stage: Stage, ledger_server: RunningLedger, ledger: Ledger, approve: Callable[..., None]
) -> None:
    brief = {"match": "led__once", "effect": "Once", "approval": "NotRequired", "timeoutSeconds": 1}
    await stage.agent([calls(("led__once", {"key": "o", "crash": True})), says("ok")], tools=[brief])
    await stage.task()
    await stage.approval("one-1")
    approve("one-1", choice="Retry")  # while its server is dead
    again = await stage.approval("one-1-r1")
    assert again["spec"]["request"]["kind"] == "InDoubt"
    status = await stage.until_phase("one", "Waiting")
    assert [effect["call"] for effect in status["unresolved"]] == [1]
    ledger_server.afresh()
    approve("one-1-r1", choice="Done")
    assert not (await stage.done())["unresolved"]


@pytest.mark.behaviour(14)
async def test_a_task_that_only_a_newer_version_can_run_says_so(
    stage: Stage, as_worker: Callable[..., Awaitable[Manifest]]
) -> None:
    await stage.agent([calls(("sleep", {"seconds": 3})), says("ok")])
    await stage.task()
    status = await stage.until_phase("one", "Waiting")
    await as_worker("one", journal={**status["journal"], "schema": SCHEMA + 1})
    await stage.until("one", lambda status: f"newer version (schema {SCHEMA + 1}" in status["summary"], "explained")


@pytest.mark.behaviour(29)
async def test_a_task_whose_status_was_changed_by_hand_under_its_owner_ends_and_says_so(
    stage: Stage, ledger: Ledger, as_worker: Callable[..., Awaitable[Manifest]]
) -> None:
    await stage.agent([calls(("led__once", {"key": "o", "seconds": 2})), says("ok")])
    await stage.task()
    await started(ledger, "once")
    status = await stage.until("one", lambda status: status["unresolved"], "under way")
    await as_worker("one", journal={**status["journal"], "head": "0" * 64})
    status = await stage.until_phase("one", "Failed")
    assert "changed from outside" in status["summary"]
    assert [effect["call"] for effect in status["unresolved"]] == [1]
