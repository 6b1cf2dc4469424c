"""Deleting a task: refused while effects are unresolved, otherwise its end, and nothing of it stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aura_operator.store.resources import APPROVALS, CHECKPOINTS, SECRETS, TASKS
from aura_operator.testing.ledger import Ledger
from hack.kubectl import Kubectl, KubectlError
from tests.processes import Processes
from tests.stage import ECHO, Stage, calls, says, until

pytestmark = [pytest.mark.behaviour(33), pytest.mark.usefixtures("operator")]

Rules = list[dict[str, Any]]


async def nothing_left(stage: Stage) -> None:
    """Returns when no task, and nothing that a task owned, is in the namespace."""
    left: list[str] = []

    async def nothing() -> bool:
        nonlocal left
        left = [
            f"{resource.kind} {item['metadata']['name']}"
            for resource in (TASKS, APPROVALS, CHECKPOINTS, SECRETS)
            for item in await stage.all(resource)
        ]
        return not left

    await until(nothing, lambda: f"end of {left}", 40, pause_seconds=0.1)


async def in_doubt(stage: Stage, ledger: Ledger) -> None:
    rule = {"match": "led__once", "timeoutSeconds": 1}
    await stage.agent([calls(("led__once", {"key": "pay", "hang": True})), says("ok")], tools=[rule])
    await stage.task()
    await stage.until_phase("one", "Waiting")


async def test_a_task_with_an_unresolved_effect_is_not_deleted_and_the_refusal_says_what_to_do(
    stage: Stage, ledger: Ledger, kubectl: Kubectl, approve: Callable[..., None]
) -> None:
    await in_doubt(stage, ledger)
    with pytest.raises(KubectlError, match="forget-unresolved") as refused:
        kubectl("delete", "auratask", "one")
    assert "led__once" in refused.value.stderr
    approve("one-1", choice="Done", reason="seen")
    await stage.done()
    kubectl("delete", "auratask", "one", "--wait=false")
    await nothing_left(stage)


async def test_with_the_annotation_it_is_deleted(stage: Stage, ledger: Ledger, kubectl: Kubectl) -> None:
    await in_doubt(stage, ledger)
    kubectl("annotate", "auratask", "one", "aura.mezmo.com/forget-unresolved=true")
    kubectl("delete", "auratask", "one", "--wait=false")
    await nothing_left(stage)


async def test_deleting_a_running_task_stops_its_model_call_and_starts_nothing_more(
    stage: Stage, ledger: Ledger, kubectl: Kubectl, operator: Processes
) -> None:
    await stage.agent([calls(("led__read", {"key": "a"})), calls(("led__once", {"key": "b"}), delay_seconds=2.0)])
    await stage.task()
    await stage.until("one", lambda status: status.get("progress", {}).get("steps") == 2, "in its second model call")
    kubectl("delete", "auratask", "one", "--wait=false")
    await nothing_left(stage)
    # Whatever the deleted one still did would come before the end of another that thinks for as long.
    await stage.agent([says("ok", delay_seconds=3.0)], name="later")
    await stage.task("later", agent="later")
    await stage.done("later")
    assert ledger.starts("once") == ()
    assert all(process.running for process in operator.started)


async def test_what_a_task_owned_goes_with_it(
    stage: Stage, ledger: Ledger, kubectl: Kubectl, once_required: Rules
) -> None:
    sensitive = {"match": "led__read", "effect": "Read", "sensitive": True}
    script = [
        calls(("led__idempotent", {"key": "large", "bytes": 9000})),
        calls(("led__read", {"key": "secret"})),
        calls(("led__once", {"key": "c"})),
    ]
    await stage.agent(script, tools=[sensitive, *once_required])
    await stage.task()
    await stage.until_phase("one", "Waiting")
    assert await stage.checkpoints() and await stage.approvals() and await stage.all(SECRETS)
    kubectl("delete", "auratask", "one", "--wait=false")
    await nothing_left(stage)


async def test_a_new_task_of_the_same_name_starts_clean(
    stage: Stage, ledger: Ledger, kubectl: Kubectl, approve: Callable[..., None], once_required: Rules
) -> None:
    await stage.agent([calls(("led__once", {"key": "pay"})), ECHO], tools=once_required)
    await stage.task()
    await stage.until_phase("one", "Waiting")
    approve("one-1")
    first = await stage.done()
    kubectl("delete", "auratask", "one")
    # At once: what the old one owned may still be there, an approval with a vote on it too.
    await stage.task(text="once more")
    second = await stage.until_phase("one", "Waiting")
    assert second["run"] != first["run"] and second["epoch"] == 1
    assert len(ledger.starts("once")) == 1, "the old approval allows nothing"

    def asked_anew(manifest: dict[str, Any]) -> bool:
        fresh: bool = manifest["spec"]["request"]["run"] == second["run"]
        return fresh and bool(manifest.get("status", {}).get("phase") == "Pending")

    await stage.approval("one-1", asked_anew)
    approve("one-1")
    assert "once more" in (await stage.done())["result"]["text"]
    runs = [line.run for line in ledger.starts("once")]
    assert runs == [first["run"], second["run"]]
    await until(lambda: len({line.idempotency_key for line in ledger.starts("once")}) == 2, "two keys")
