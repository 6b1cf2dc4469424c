"""The tools that need no server: what their arguments may be, and what becomes of a call's plan. Tables, no worker."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from aura_operator.agent.arguments import check
from aura_operator.agent.builtin import (
    ASK_USER,
    BUILT_IN,
    LONGEST_QUESTION,
    LONGEST_SLEEP_SECONDS,
    SLEEP,
    as_built_in,
    sleep_seconds,
)
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.effects import Effect
from aura_operator.core.plan import CallPlan

PLAN = CallPlan(call=1, part=0, tool="sleep", effect=Effect.ONCE, declared=False, approval=True)


@pytest.mark.parametrize(("arguments", "seconds"), [('{"seconds": 60}', 60.0), ('{"seconds":0.5}', 0.5)])
def test_sleep_takes_seconds(arguments: str, seconds: float) -> None:
    assert sleep_seconds(arguments) == seconds
    assert check(arguments, SLEEP) is None


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        (SLEEP, "{", "not JSON"),
        (SLEEP, "{}", "'seconds' is a required property"),
        (SLEEP, '{"seconds": "60"}', "'60' is not of type 'number'"),
        (SLEEP, '{"seconds": true}', "True is not of type 'number'"),
        (SLEEP, '{"seconds": NaN}', "NaN"),
        (SLEEP, '{"seconds": 0}', "minimum of 0"),
        (SLEEP, json.dumps({"seconds": LONGEST_SLEEP_SECONDS + 1}), "maximum of 2592000"),
        (ASK_USER, '{"question": 1}', "not of type 'string'"),
        (ASK_USER, '{"question": " "}', "does not match"),
        (ASK_USER, json.dumps({"question": "x" * (LONGEST_QUESTION + 1)}), "is too long"),
    ],
)
def test_what_can_not_be_slept_or_asked_is_told(tool: ToolSpec, arguments: str, words: str) -> None:
    assert words in str(check(arguments, tool))


def test_a_sleep_becomes_a_timer_that_no_rule_of_an_agent_can_put_under_approval() -> None:
    planned = as_built_in(PLAN, '{"seconds": 60}')

    assert planned.timer_seconds == 60.0 and planned.refused is None
    assert (planned.effect, planned.declared, planned.approval) == (Effect.READ, True, False)


def test_a_question_that_nobody_may_see_is_refused() -> None:
    planned = as_built_in(replace(PLAN, tool="ask_user", sensitive=True), '{"question": "which key?"}')

    assert not planned.question and "sensitive" in str(planned.refused)


def test_a_call_that_was_refused_before_stays_so_for_that_reason() -> None:
    planned = as_built_in(replace(PLAN, refused="not JSON"), "{")

    assert planned.refused == "not JSON" and planned.timer_seconds is None


def test_the_plan_of_a_servers_tool_is_left_alone() -> None:
    plan = replace(PLAN, tool="led__once")

    assert as_built_in(plan, "{}") is plan


def test_each_built_in_stands_under_its_own_name_and_no_server_can_have_it() -> None:
    assert all(name == tool.spec.name and "__" not in name and not tool.spec.server for name, tool in BUILT_IN.items())
