"""What a person decides with kubectl is what happens: to the byte, once, call by call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from aura_operator.testing.ledger import Ledger
from hack.kubectl import Kubectl, KubectlError
from tests.e2e.toolserver import ToolServer
from tests.stage import ECHO, Stage, calls, ended, says

pytestmark = pytest.mark.usefixtures("operator")

Rules = list[dict[str, Any]]


def decided(manifest: dict[str, Any]) -> bool:
    return bool(manifest.get("status", {}).get("phase", "Pending") != "Pending")


def served_by(toolserver: ToolServer) -> dict[str, Any]:
    """An agent's part that has `t__act`, a `Once` tool which needs approval."""
    return {
        "mcpServers": [{"name": "t", "transport": "StreamableHTTP", "url": toolserver.url}],
        "tools": [{"match": "t__act", "effect": "Once", "approval": "Required"}],
    }


def exact(text: str | bytes) -> Any:
    """JSON with its numbers as they are written."""
    return json.loads(text, parse_int=str, parse_float=str)


@pytest.mark.behaviour(15, 16)
async def test_what_runs_is_to_the_byte_what_was_shown_and_approved(
    stage: Stage, toolserver: ToolServer, approve: Callable[..., None]
) -> None:
    text = (
        '{"one": 1.0, "big":12345678901234567890,  "small": 0.10000000000000001, "ä": "\\u00e4 \\"q\\"", "list": [-1]}'
    )
    sent = text.replace("0.10000000000000001", "0.1")  # the same double
    await stage.agent([{"text": "", "calls": [{"tool": "t__act", "args": text}]}, ECHO], **served_by(toolserver))
    await stage.task()
    request = (await stage.approval("one-1"))["spec"]["request"]
    assert request["arguments"] == text
    assert request["digest"] == "sha256:" + sha256(text.encode()).hexdigest()
    assert toolserver.bodies == []
    approve("one-1")
    await stage.done()
    (body,) = toolserver.bodies
    assert exact(body)["params"]["arguments"] == exact(sent)
    key = exact(body)["params"]["_meta"]["aura.mezmo.com/idempotencyKey"]
    assert key.endswith(request["digest"].removeprefix("sha256:"))


@pytest.mark.behaviour(16)
async def test_a_tool_that_changed_after_the_request_is_not_called_but_asked_about_again(
    stage: Stage, toolserver: ToolServer, approve: Callable[..., None]
) -> None:
    await stage.agent([calls(("t__act", {"key": "a"})), ECHO], **served_by(toolserver))
    await stage.task()
    first = await stage.approval("one-1")
    await stage.until_phase("one", "Waiting")
    toolserver.stop()
    toolserver.start(limit=2)
    approve("one-1")
    second = await stage.approval("one-1-r1")
    digests = [manifest["spec"]["request"]["toolSchemaDigest"] for manifest in (first, second)]
    assert digests[0] != digests[1]
    assert toolserver.bodies == [], "what was approved is not what would have run"
    approve("one-1-r1")
    assert "acted under limit 2" in (await stage.done())["result"]["text"]
    assert len(toolserver.bodies) == 1


@pytest.mark.behaviour(17)
async def test_of_two_people_who_decide_at_once_one_is_heard_and_everybody_sees_the_same(
    stage: Stage, ledger: Ledger, kubectl: Kubectl, kubectl_as: Callable[[str], Kubectl], once_required: Rules
) -> None:
    kubectl("create", "rolebinding", "more-approvers", "--clusterrole=aura-approver", "--user=carol")
    approvals = {"approvers": {"users": ["bob", "carol"]}, "expiresAfterSeconds": 600}
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=once_required, approvals=approvals)

    async def vote(who: str, approval: str, approved: bool) -> bool:
        patch = json.dumps({"spec": {"decision": {"approved": approved, "reason": f"{who} says so"}}})
        command = ("patch", "aa", approval, "--type=merge", "--patch", patch)
        done = await asyncio.to_thread(kubectl_as(who).run, *command)
        assert done.returncode == 0 or "has been decided already" in done.stderr
        return done.returncode == 0

    for number in range(4):
        await stage.task(f"task-{number}")
        approval = f"task-{number}-1"
        await stage.approval(approval)
        bob, carol = await asyncio.gather(vote("bob", approval, True), vote("carol", approval, False))
        assert bob != carol, "one of the two was too late, and was told so"
        settled = await stage.approval(approval, decided)
        status = await stage.done(f"task-{number}")
        runs = [line for line in ledger.starts("once") if line.run == status["run"]]
        if bob:
            assert settled["status"]["phase"] == "Approved" and len(runs) == 1
        else:
            assert settled["status"]["phase"] == "Denied" and runs == []
        who = "bob" if bob else "carol"
        assert settled["status"]["reason"] == f"{who} says so"
        assert list(settled["spec"]["decisions"]) == [who]
        assert f"by {who}" in "\n".join(str(event["note"]) for event in await stage.events(approval))


@pytest.mark.behaviour(20)
async def test_an_approval_that_nobody_answers_expires_and_the_model_is_told_so(
    stage: Stage, ledger: Ledger, once_required: Rules
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=once_required, expires_after_seconds=2)
    await stage.task()
    expires = (await stage.approval("one-1"))["spec"]["expiresAt"]
    settled = await stage.approval("one-1", decided)
    assert (settled["status"]["phase"], settled["status"]["reason"]) == ("Expired", f"nobody answered by {expires}")
    text = (await stage.done())["result"]["text"]
    assert f"led__once was not called: nobody answered by {expires}" in text and "enied" not in text
    assert ledger.starts() == ()


@pytest.mark.behaviour(21)
async def test_a_denial_reaches_the_model_word_for_word_and_nothing_is_called(
    stage: Stage, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    reason = '  Nein: "prod" is frozen — INC-42\nask again at 09:00 ✋ <b>&amp;</b> \\n '
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=once_required)
    await stage.task()
    await stage.approval("one-1")
    approve("one-1", approved=False, reason=reason)
    assert f"Denied by bob: {reason}" in (await stage.done())["result"]["text"]
    assert (await stage.approval("one-1"))["status"]["reason"] == reason
    assert ledger.starts() == ()


@pytest.mark.behaviour(22)
async def test_of_three_calls_side_by_side_two_end_without_the_one_that_waits_for_a_person(
    stage: Stage, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    step = calls(("led__read", {"key": "r"}), ("led__once", {"key": "o"}), ("led__idempotent", {"key": "i"}))
    await stage.agent([step, ECHO], tools=once_required)
    await stage.task()
    status = await stage.until_phase("one", "Waiting")
    assert [wait["name"] for wait in status["waitingFor"]] == ["one-2"]
    assert status["progress"]["steps"] == 3 and status["unresolved"] == []
    assert len(ledger.phase("end", "read")) == len(ledger.phase("end", "idempotent")) == 1
    assert ledger.starts("once") == ()
    approve("one-2")
    text = (await stage.done())["result"]["text"]
    assert text.splitlines()[1:] == ["read r: done", "once o: done", "idempotent i: done"], "in the order of the calls"
    assert [len(ledger.starts(tool)) for tool in ("read", "once", "idempotent")] == [1, 1, 1]


@pytest.mark.behaviour(22)
async def test_three_approvals_are_decided_one_by_one_and_each_moves_its_own_call(
    stage: Stage, ledger: Ledger, approve: Callable[..., None], once_required: Rules
) -> None:
    step = calls(*(("led__once", {"key": key}) for key in ("first", "second", "third")))
    await stage.agent([step, ECHO], tools=once_required)
    await stage.task()
    status = await stage.until_phase("one", "Waiting")
    assert [wait["name"] for wait in status["waitingFor"]] == ["one-1", "one-2", "one-3"]
    shown = [(await stage.approval(f"one-{call}"))["spec"]["request"]["arguments"] for call in (1, 2, 3)]
    assert [json.loads(text)["key"] for text in shown] == ["first", "second", "third"]

    approve("one-2")
    await ended(ledger, "once", "second")
    status = await stage.until("one", lambda status: len(status["waitingFor"]) == 2, "waiting for the others")
    assert [line.key for line in ledger.starts("once")] == ["second"]
    approve("one-3", approved=False, reason="not the third")
    status = await stage.until("one", lambda status: len(status["waitingFor"]) == 1, "waiting for the last")
    assert [wait["name"] for wait in status["waitingFor"]] == ["one-1"]
    assert [line.key for line in ledger.starts("once")] == ["second"]
    approve("one-1")
    lines = (await stage.done())["result"]["text"].splitlines()[1:]
    assert lines == ["once first: done", "once second: done", "led__once was not called. Denied by bob: not the third"]
    assert [line.key for line in ledger.starts("once")] == ["second", "first"]


@pytest.mark.behaviour(15)
async def test_nobody_but_an_approver_moves_the_call(
    stage: Stage, ledger: Ledger, kubectl: Kubectl, approve: Callable[..., None], once_required: Rules
) -> None:
    kubectl("create", "rolebinding", "strangers", "--clusterrole=aura-approver", "--user=mallory")
    await stage.agent([calls(("led__once", {"key": "pay"})), says("ok")], tools=once_required)
    await stage.task()
    await stage.until_phase("one", "Waiting")
    with pytest.raises(KubectlError, match="you are not one of the approvers"):
        approve("one-1", by="mallory")
    assert not decided(await stage.approval("one-1")) and ledger.starts() == ()
    approve("one-1")
    await stage.done()
    assert len(ledger.starts("once")) == 1
