"""The model asks a person: the question outlives every process, and is answered while none runs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hack.kubectl import Kubectl
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls

QUESTION = "Which region?\nOnly one of them is up."


@pytest.mark.behaviour(47)
async def test_a_question_survives_the_death_of_every_process_and_is_answered_by_kubectl(
    stage: Stage, processes: Processes, kubectl_as: Callable[[str], Kubectl]
) -> None:
    await stage.agent(
        [calls(("ask_user", {"question": QUESTION})), ECHO],
        approvals={"approvers": {"users": ["bob"]}, "expiresAfterSeconds": 600},
    )
    controller, worker = processes.controller(), processes.worker()
    await stage.task()
    status = await stage.until_phase("one", "Waiting")
    asked = await stage.approval("one-1")
    assert asked["spec"]["request"]["question"] == QUESTION
    assert asked["spec"]["request"]["kind"] == "Question" and "arguments" not in asked["spec"]["request"]
    (parked,) = [item for item in status["conditions"] if item["type"] == "Parked"]
    assert (parked["status"], parked["reason"]) == ("True", "QuestionAsked")
    assert status["summary"].startswith("question one-1: answer by ")

    worker.kill9()
    controller.kill9()
    answer = {"spec": {"decision": {"approved": True, "answer": "eu-west-1"}}}
    kubectl_as("bob")("patch", "auraapproval", "one-1", "--type=merge", "--patch", json.dumps(answer))
    processes.controller()
    processes.worker()
    status = await stage.done()
    assert "bob answered: eu-west-1" in status["result"]["text"]
    assert status["journal"]["schema"] == 2, "an older version would not know what a question is"
    assert (await stage.approval("one-1"))["spec"]["expiresAt"] == asked["spec"]["expiresAt"]
