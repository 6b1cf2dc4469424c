"""What an AuraAgent's status says, as a table."""

from __future__ import annotations

from typing import Any

import pytest

from aura_operator.controller.agents import readiness

SERVER = {"name": "k8s", "transport": "StreamableHTTP", "url": "http://k8s/mcp"}
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
        ({"subAgents": [{"name": "x"}], "approvals": BOB}, False, "Unsupported"),
    ],
)
def test_an_agent_is_ready_only_if_somebody_can_approve(spec: dict[str, Any], ready: bool, reason: str) -> None:
    found = readiness(spec)
    assert found[:2] == (ready, reason)
    assert ready or "spec." in found[2], "the message says what to change"
