"""Objects that this version can't read, or that somebody has spoilt by hand, are left alone and cost no worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aura_operator.core import codec
from aura_operator.core.commands import CallModel
from aura_operator.core.lifecycle import Phase
from aura_operator.errors import UnreadableObjectError
from aura_operator.store.approvals import approval_ref, approval_view
from aura_operator.store.interface import add
from aura_operator.store.resources import REVISIONS, Ref
from aura_operator.store.view import task_ref, task_view
from aura_operator.testing import memory_schema
from aura_operator.testing.clock import virtual_time
from aura_operator.worker.task import models, performing
from tests.worker.world import NAMESPACE, ONE, World, one_worker

ODD = task_ref(NAMESPACE, "odd")
JOURNAL = {"schema": codec.SCHEMA + 1, "next": 1, "head": "h", "entries": ["{}"]}
WORDS = [
    {"waitingFor": [{"kind": "Webhook", "name": "w"}]},
    {"lastEnd": {"worker": "w", "incarnation": "u.1", "epoch": 1, "proof": "Dreamt", "at": "2026-12-01T00:00:00Z"}},
]


@pytest.mark.behaviour(14, 48)
@pytest.mark.parametrize("status", WORDS, ids=["wait", "proof"])
@virtual_time
async def test_a_task_with_a_word_of_a_newer_version_ends_no_worker(
    status: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_schema, "check", lambda *_: None)  # the server has the CRDs of that version
    async with one_worker([("s__read",)]) as (world, life):
        await world.create(ODD, desired="Pause")
        whole = {"journal": JOURNAL, "epoch": 1, **status}
        ops = [add(f"/status/{name}", value) for name, value in whole.items()]
        await world.memory.patch(ODD, ops, subresource="status")
        await world.memory.patch(ODD, [add("/spec/desired", "Run")])
        await world.create()
        await world.until(ONE, Phase.SUCCEEDED)
        assert life.worker.not_ready() is None
        found = (await world.memory.get(ODD))["status"]
        assert (found["phase"], found["epoch"]) == ("Pending", 1), "it is left alone"


@pytest.mark.parametrize("view", [task_view, approval_view])
def test_an_object_that_makes_no_view_is_an_error_of_ours(view: Any) -> None:
    with pytest.raises(UnreadableObjectError, match="n/x can't be read by this version"):
        view({"metadata": {"namespace": "n", "name": "x"}, "spec": {}})


@pytest.mark.behaviour(29)
@pytest.mark.parametrize("data", [{"other": 1}, {}])
@virtual_time
async def test_a_revision_that_holds_no_agent_fails_its_task_and_no_worker(data: dict[str, Any]) -> None:
    world = World([("s__approved",)])
    world.answering = False
    async with world.controlled(), asyncio.TaskGroup() as group:
        first = world.life()
        living = group.create_task(first.run())
        await world.create()
        status = await world.until(ONE, Phase.WAITING)
        revision = Ref(resource=REVISIONS, namespace=NAMESPACE, name=status["agentRevision"])
        first.drain()
        await living  # the next process has read no revision yet
        await world.memory.patch(revision, [add("/data", data)])
        await world.memory.patch(approval_ref(NAMESPACE, "one-1"), [add("/spec/decision", {"approved": True})])
        second = world.life()
        living = group.create_task(second.run())
        status = await world.ended()
        assert (status["phase"], status["reason"]) == ("Failed", "BadConfiguration")
        assert "holds no agent any more" in status["summary"]
        assert second.worker.not_ready() is None
        living.cancel()


@virtual_time
async def test_a_cancellation_from_within_is_a_fault_and_not_the_runners_own(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lets_out(*_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(models, "perform", lets_out)
    with pytest.raises(RuntimeError, match="model-1-1 was cancelled from within"):
        await performing.perform(None, CallModel(turn=1, attempt=1), None)  # type: ignore[arg-type]
