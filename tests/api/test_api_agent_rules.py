"""What an agent's spec means in core's words, and what of it this version refuses. Tables, no server."""

from __future__ import annotations

from typing import Any

import pytest

from aura_operator.api.agent import AgentSpec
from aura_operator.core.effects import Effect, OnInDoubt, ToolRule


def spec(**fields: Any) -> AgentSpec:
    return AgentSpec.model_validate({"model": {"name": "scripted:x"}, **fields})


def test_rules_keep_their_order_and_say_nothing_where_the_agent_says_nothing() -> None:
    full = {
        "match": "s__*",
        "effect": "Once",
        "approval": "NotRequired",
        "timeoutSeconds": 7,
        "onInDoubt": "Fail",
        "sensitive": True,
    }
    assert spec(tools=[full, {"match": "*", "approval": "Required"}]).core_rules() == (
        ToolRule(
            match="s__*",
            effect=Effect.ONCE,
            approval_required=False,
            timeout_seconds=7.0,
            on_in_doubt=OnInDoubt.FAIL,
            sensitive=True,
        ),
        ToolRule(match="*", approval_required=True),
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"subAgents": [{"name": "a", "agentRef": {"name": "b"}, "description": "c"}]}, "spec.subAgents"),
        ({"tools": [{"match": "*", "lookup": "s__look"}]}, "lookup"),
    ],
)
def test_what_this_version_lacks_is_said(fields: dict[str, Any], words: str | None) -> None:
    said = spec(**fields).unsupported()
    assert said is None if words is None else words in str(said)
