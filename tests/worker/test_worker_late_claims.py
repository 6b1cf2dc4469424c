"""What was read beside a claim grows old, and what is claimed again and again grows long; in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from aura_operator.agent.specs import ToolSpec
from aura_operator.core.journal import INLINE_LIMIT_ENTRIES
from aura_operator.core.lifecycle import Phase
from aura_operator.errors import ForbiddenError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.interface import add
from aura_operator.store.resources import SECRETS
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, calls
from aura_operator.worker import candidates
from tests.worker.fakes import LedgerTools
from tests.worker.world import NAMESPACE, ONE, one_worker


@pytest.mark.behaviour(16, 36)
@virtual_time
async def test_a_tool_that_changes_while_the_claims_answer_is_late_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = False
    fresh = LedgerTools.fresh

    async def listed(tools: LedgerTools, tool: str) -> ToolSpec | None:
        spec = await fresh(tools, tool)
        return replace(spec, schema_digest="sha256:" + "f" * 64) if changed and spec is not None else spec

    monkeypatch.setattr(LedgerTools, "fresh", listed)
    async with one_worker([("s__approved",)]) as (world, life):
        world.answering = False
        await world.create()
        await world.until(ONE, Phase.WAITING)
        point = "before patch auratasks/one"
        life.held[point] = asyncio.Event()
        await world.memory.patch(approval_ref(NAMESPACE, "one-1"), [add("/spec/decision", {"approved": True})])
        await world.clock.sleep(2)  # the tool is listed, and the claim isn't answered
        changed = True
        await world.clock.sleep(5)
        life.held[point].set()
        await world.clock.sleep(10)
        assert world.starts("s__approved") == 0, "not what was approved"
        assert [wait.name for wait in (await world.task()).waiting_for] == ["one-1-r1"], "it is asked about again"


@virtual_time
async def test_a_task_that_is_claimed_and_given_back_for_days_goes_on_when_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each claim adds an entry; they are sealed like any others, or the status would take no more."""
    monkeypatch.setattr(candidates, "LONGEST_TROUBLE_SECONDS", 10.0)  # days in hours
    async with one_worker([("s__read",)]) as (world, life):
        life.store.add(Refuse(ForbiddenError("no")), calls("get", SECRETS))
        await world.agent(NAMESPACE, secret="locked")
        await world.create()
        await world.clock.sleep(9000)
        task = await world.task()
        assert task.journal is not None and task.epoch > INLINE_LIMIT_ENTRIES
        assert len(task.journal.entries) <= INLINE_LIMIT_ENTRIES + 1 and task.journal.sealed is not None
        life.store.clear()
        assert (await world.ended())["phase"] == "Succeeded"
