"""Bad input and bad neighbours: a clear reason that names the thing, in its time, and nobody crashes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from aura_operator.core.instants import from_text
from aura_operator.testing.ledger import Ledger
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, says

pytestmark = pytest.mark.behaviour(29)


@pytest.fixture(autouse=True)
async def survivors(operator: Processes, stage: Stage) -> Any:
    """Whatever a test does: the same processes run on, and run the next task."""
    yield
    await stage.agent([says("fine")], name="control-agent")
    await stage.task("control", agent="control-agent")
    await stage.done("control")
    assert all(process.running for process in operator.started)
    for process in operator.started:
        faults = process.logged("a fault of this operator; please report it")
        assert faults == [], faults


async def failed(stage: Stage, reason: str, says_so: str, *, within: float, name: str = "one") -> dict[str, Any]:
    """The status of a task that must fail for a reason, in words, in time, with an Event that says the same."""
    status = await stage.until_phase(name, "Succeeded", "Failed", "Cancelled")
    assert (status["phase"], status["reason"]) == ("Failed", reason), status
    assert re.search(says_so, status["summary"]), status["summary"]
    condition = next(item for item in status["conditions"] if item["type"] == "Failed")
    assert condition["status"] == "True" and condition["reason"] == reason
    assert re.search(says_so, condition["message"])
    created = (await stage.read(name))["metadata"]["creationTimestamp"]
    assert from_text(status["finishedAt"]) - from_text(created) <= within
    notes = [event["note"] for event in await stage.events(name) if event["reason"] == "TaskFailed"]
    assert notes and re.search(says_so, notes[0])
    return status


async def test_an_unknown_agent(stage: Stage) -> None:
    await stage.task(agent="nobody")
    await failed(stage, "AgentNotFound", "AuraAgent .*/nobody doesn't exist; create it", within=20)


async def test_an_agent_that_comes_a_little_later_than_its_task(stage: Stage) -> None:
    await stage.task()
    await stage.agent([says("ok")])
    await stage.done()


async def test_a_model_of_an_unknown_provider(stage: Stage) -> None:
    await stage.agent([], model={"name": "nonsense:x"})
    await stage.task()
    status = await stage.until_phase("one", "Failed", "Succeeded")
    await failed(stage, status["reason"], "nonsense", within=10)
    assert status["reason"] not in ("InternalError", "Error")


async def test_a_model_that_cant_be_reached(stage: Stage) -> None:
    await stage.agent([], model={"name": "openai-chat:m", "baseURL": "http://127.0.0.1:9/v1", "retries": 1})
    await stage.task()
    await failed(stage, "ModelUnreachable", r"check spec\.model\.baseURL .*\(2 attempts\)", within=10)


async def test_a_broken_script_of_the_scripted_model(stage: Stage) -> None:
    await stage.agent([], model={"name": "scripted:test", "settings": {"script": [{"txt": "typo"}]}})
    await stage.task()
    await failed(stage, "BadModelSettings", "txt", within=10)


async def test_a_tool_server_that_cant_be_reached(stage: Stage) -> None:
    gone = {"name": "gone", "transport": "StreamableHTTP", "url": "http://127.0.0.1:9/mcp"}
    model = {"name": "scripted:test", "settings": {"script": [says("never")]}, "retries": 1}
    await stage.agent([], model=model, mcpServers=[gone])
    await stage.task()
    await failed(stage, "ToolServerUnreachable", r"'gone' at http://127\.0\.0\.1:9/mcp can't be used", within=10)


async def test_a_missing_secret(stage: Stage) -> None:
    model = {"name": "openai-chat:m", "apiKeySecretRef": {"name": "no-key", "key": "key"}}
    await stage.agent([], model=model)
    await stage.task()
    await failed(stage, "SecretNotFound", "Secret .*/no-key, which the agent names, doesn't exist", within=10)


async def test_a_session_which_this_version_doesnt_run(stage: Stage) -> None:
    await stage.agent([says("never")])
    await stage.task(sessionRef={"name": "chat"})
    await failed(stage, "Unsupported", "sessionRef", within=10)


async def test_a_model_that_loops(stage: Stage, ledger: Ledger) -> None:
    await stage.agent([calls(("led__read", {"key": "again"}), loop=True)], limits={"turns": 7})
    await stage.task()
    await failed(stage, "TurnLimit", "7 model turns without a final answer", within=15)
    assert len(ledger.starts("read")) == 7


async def test_a_model_that_fails_for_good(stage: Stage) -> None:
    await stage.agent([{"error": {"status": 401}}])
    await stage.task()
    status = await stage.until_phase("one", "Failed", "Succeeded")
    await failed(stage, status["reason"], "401", within=10)


async def test_a_model_that_fails_for_a_while_is_asked_again_within_its_budget(stage: Stage) -> None:
    model = {"name": "scripted:test", "settings": {"script": [{"error": {"status": 503}}]}, "retries": 2}
    await stage.agent([], model=model)
    await stage.task()
    status = await stage.until_phase("one", "Failed", "Succeeded")
    await failed(stage, status["reason"], r"\(3 attempts\)", within=15)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ({"tool": "led__nothing", "args": {}}, "unknown tool 'led__nothing'; there are: .*led__once"),
        ({"tool": "led__read", "args": '{"key": "a'}, "arguments are not JSON"),
        ({"tool": "led__read", "args": '["a"]'}, "must be a JSON object, not an array"),
        ({"tool": "led__once", "args": '{"key": 5}'}, "don't fit its schema: key: 5 is not of type 'string'"),
        ({"tool": "led__once", "args": '{"key": NaN}'}, "NaN is no JSON value"),
        ({"tool": "sleep", "args": '{"seconds": -1}'}, "sleep"),
    ],
    ids=["unknown tool", "broken JSON", "no object", "wrong type", "NaN", "negative sleep"],
)
async def test_a_call_that_cant_be_made_is_told_to_the_model_and_the_task_goes_on(
    stage: Stage, ledger: Ledger, call: dict[str, Any], told: str
) -> None:
    await stage.agent([{"text": "", "calls": [call]}, ECHO])
    await stage.task()
    text = (await stage.done())["result"]["text"]
    assert re.search(told, text), text
    assert ledger.starts() == ()


async def test_a_read_that_hangs_past_its_timeout(stage: Stage, ledger: Ledger) -> None:
    rule = {"match": "led__read", "effect": "Read", "timeoutSeconds": 1}
    await stage.agent([calls(("led__read", {"key": "a", "hang": True})), ECHO], tools=[rule])
    await stage.task()
    status = await stage.done()
    assert "no answer within the call's time" in status["result"]["text"]
    assert from_text(status["finishedAt"]) - from_text(status["startedAt"]) < 8


async def test_a_once_call_that_hangs_past_its_timeout_is_in_doubt(stage: Stage, ledger: Ledger) -> None:
    rule = {"match": "led__once", "timeoutSeconds": 1}
    await stage.agent([calls(("led__once", {"key": "a", "hang": True})), ECHO], tools=[rule])
    await stage.task()
    status = await stage.until_phase("one", "Waiting")
    assert "IN DOUBT one-1" in status["summary"]
    assert from_text(status["progress"]["at"]) - from_text(status["startedAt"]) < 8
    assert len(ledger.starts("once")) == 1


async def test_a_result_of_fifty_megabytes(stage: Stage, ledger: Ledger) -> None:
    limits = {"toolResultBytes": 2000}
    await stage.agent([calls(("led__read", {"key": "a", "bytes": 50_000_000})), ECHO], limits=limits)
    await stage.task()
    text = (await stage.done())["result"]["text"]
    assert re.search(r"the result has 50000000 bytes|its result has over \d+ bytes and was thrown away", text)
    assert len(text) < 2100
    assert len(ledger.starts("read")) == 1


async def test_a_result_over_the_limit_is_cut_and_says_so(stage: Stage) -> None:
    limits = {"toolResultBytes": 2000}
    await stage.agent([calls(("led__read", {"key": "a", "bytes": 10_000})), ECHO], limits=limits)
    await stage.task()
    text = (await stage.done())["result"]["text"]
    assert "[cut: the result has 10000 bytes, of which 2000 are allowed" in text and len(text) < 2100


async def test_arguments_of_two_hundred_kilobytes(stage: Stage, ledger: Ledger) -> None:
    big = "x" * 200_000
    await stage.agent([calls(("led__read", {"key": "a", "text": big})), says("ok")])
    await stage.task()
    await stage.done()
    assert ledger.starts("read")[0].arguments["text"] == big
