"""The model asks a person, who answers with kubectl: across kills, with two who answer at once, and in silence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from hack.kubectl import Kubectl, KubectlError
from tests.stage import ECHO, Stage, calls

QUESTION = "Which region?\nOnly one of them is up."
ASKING = [calls(("ask_user", {"question": QUESTION})), ECHO]
PEOPLE = {"approvers": {"users": ["bob", "carol"]}, "expiresAfterSeconds": 600}


@pytest.fixture
def people(kubectl: Kubectl) -> None:
    """carol may decide as bob may."""
    kubectl("create", "rolebinding", "carol", "--clusterrole=aura-approver", "--user=carol")


@pytest.mark.behaviour(47)
@pytest.mark.usefixtures("operator", "people")
async def test_of_two_answers_at_once_one_stands_and_the_other_is_told(
    stage: Stage, kubectl_as: Callable[[str], Kubectl]
) -> None:
    await stage.agent(ASKING, approvals=PEOPLE)

    def answer(user: str) -> bool:
        body: dict[str, Any] = {"spec": {"decision": {"approved": True, "answer": f"as {user} says"}}}
        done = kubectl_as(user).run("patch", "auraapproval", "one-1", "--type=merge", "--patch", json.dumps(body))
        assert done.returncode == 0 or "already" in done.stderr
        return done.returncode == 0

    await stage.task()
    await stage.approval("one-1")
    bob, carol = await asyncio.gather(asyncio.to_thread(answer, "bob"), asyncio.to_thread(answer, "carol"))
    assert bob != carol
    who = "bob" if bob else "carol"
    assert f"{who} answered: as {who} says" in (await stage.done())["result"]["text"]


@pytest.mark.behaviour(20, 47)
@pytest.mark.usefixtures("operator")
async def test_silence_is_told_as_silence(stage: Stage) -> None:
    await stage.agent(ASKING, approvals=PEOPLE | {"expiresAfterSeconds": 2})
    await stage.task()
    expires = (await stage.approval("one-1"))["spec"]["expiresAt"]
    assert f"nobody answered by {expires}" in (await stage.done())["result"]["text"]


@pytest.mark.behaviour(47)
@pytest.mark.usefixtures("operator")
async def test_the_requester_may_answer_and_nobody_else_where_the_agent_names_no_approvers(
    stage: Stage, kubectl: Kubectl, kubectl_as: Callable[[str], Kubectl]
) -> None:
    for user in ("alice", "mallory"):
        kubectl("create", "rolebinding", user, "--clusterrole=aura-approver", f"--user={user}")
    kubectl("create", "rolebinding", "submits", "--clusterrole=aura-submitter", "--user=alice")
    await stage.agent(ASKING, approvals={"approvers": {}})
    task = {
        "apiVersion": "aura.mezmo.com/v1alpha1",
        "kind": "AuraTask",
        "metadata": {"name": "one"},
        "spec": {"agentRef": {"name": "sre"}, "input": "go"},
    }
    kubectl_as("alice")("create", "--filename=-", stdin=task)
    await stage.approval("one-1")
    answer = ("patch", "auraapproval", "one-1", "--type=merge", "--patch")
    body = json.dumps({"spec": {"decision": {"approved": True, "answer": "mine"}}})
    with pytest.raises(KubectlError, match="you are not one of the approvers"):
        kubectl_as("mallory")(*answer, body)
    with pytest.raises(KubectlError, match="a question is answered with approved: true and an answer"):
        kubectl_as("alice")(*answer, json.dumps({"spec": {"decision": {"approved": True}}}))
    kubectl_as("alice")(*answer, body)
    assert "alice answered: mine" in (await stage.done())["result"]["text"]
