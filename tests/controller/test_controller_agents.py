"""What an AuraAgent's status says: as a table, and as the controller writes it."""

from __future__ import annotations

from typing import Any

import pytest

from aura_operator.controller.reconcilers.agents import readiness
from aura_operator.core.instants import to_second_text
from aura_operator.store.interface import add
from aura_operator.store.resources import Ref
from aura_operator.testing.clock import virtual_time
from tests.controller.house import House

SERVER = {"name": "k8s", "transport": "StreamableHTTP", "url": "http://k8s/mcp"}
SUB_AGENT = {"name": "x", "agentRef": {"name": "y"}, "description": "d"}
BOB = {"approvers": {"users": ["bob"]}}


@pytest.mark.parametrize(
    ("spec", "ready", "reason"),
    [
        ({}, True, "Accepted"),
        ({"mcpServers": [SERVER]}, False, "NoApprovers"),
        ({"mcpServers": [SERVER], "approvals": BOB}, True, "Accepted"),
        ({"mcpServers": [SERVER], "tools": [{"match": "k8s__*", "effect": "Read"}]}, True, "Accepted"),
        (
            {
                "mcpServers": [SERVER],
                "tools": [{"match": "k8s__delete", "approval": "Required"}, {"match": "*", "effect": "Read"}],
            },
            False,
            "NoApprovers",
        ),
        ({"tools": [{"match": "*", "effect": "Read", "lookup": "k8s__get"}]}, False, "Unsupported"),
        ({"subAgents": [SUB_AGENT], "approvals": BOB}, False, "Unsupported"),
        ({"tools": [{"match": "*", "effect": "Twice"}]}, False, "Unsupported"),  # of a newer version
        ({"fieldOfANewerVersion": 1}, True, "Accepted"),
    ],
)
def test_an_agent_is_ready_only_if_somebody_can_approve(spec: dict[str, Any], ready: bool, reason: str) -> None:
    found = readiness({"model": {"name": "scripted:none"}, **spec})
    assert found[:2] == (ready, reason)
    assert ready or "spec." in found[2], "the message says what to change"


async def condition(house: House, ref: Ref) -> dict[str, Any]:
    found: dict[str, Any] = (await house.memory.get(ref))["status"]["conditions"][0]
    return found


@virtual_time
async def test_what_an_older_version_could_not_do_is_looked_at_again_after_an_upgrade() -> None:
    """The spec is as it was, and so is its generation; what this version makes of it is not."""
    house = House()
    ref = await house.agent()
    old = {
        "type": "Ready",
        "status": "False",
        "reason": "Unsupported",
        "message": "this version can't",
        "lastTransitionTime": to_second_text(house.clock.now() - 9000),
        "observedGeneration": 1,
    }
    status = {"observedGeneration": 1, "revision": "sre-0000000000", "conditions": [old]}
    await house.memory.patch(ref, [add("/status", status)], subresource="status")
    async with house.controlled():
        await house.clock.advance(1)
        ready = await condition(house, ref)
        assert (ready["status"], ready["reason"]) == ("True", "Accepted")
        assert ready["lastTransitionTime"] != old["lastTransitionTime"]


@virtual_time
async def test_an_edit_that_leaves_it_ready_moves_no_transition() -> None:
    house = House()
    ref = await house.agent()
    async with house.controlled() as (seat,):
        await house.clock.advance(100)
        before = await condition(house, ref)
        await house.patch(ref, "/spec/systemPrompt", "be brief")
        await house.clock.advance(1)
        after = await condition(house, ref)
        assert after == before | {"observedGeneration": 2}
        await house.patch(ref, "/spec/subAgents", [SUB_AGENT])
        await house.clock.advance(1)
        fallen = await condition(house, ref)
        assert fallen["status"] == "False" and fallen["lastTransitionTime"] != before["lastTransitionTime"]
        assert len(seat.writes) == 3, "each once"
