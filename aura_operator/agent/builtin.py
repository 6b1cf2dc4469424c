"""The tools that need no server, as a table. Owns what the model is told of them and how their arguments become a plan.

What the plan then does (the timer of a sleep, a question to a person) belongs to core and the worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aura_operator.agent.arguments import parsed
from aura_operator.agent.digest import schema_digest
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.effects import Effect, ToolHints
from aura_operator.core.plan import CallPlan

LONGEST_SLEEP_SECONDS = 30 * 24 * 3600.0

_SLEEP_SCHEMA = {
    "type": "object",
    "properties": {
        "seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": LONGEST_SLEEP_SECONDS,
            "description": "How long to wait, in seconds.",
        }
    },
    "required": ["seconds"],
    "additionalProperties": False,
}

SLEEP = ToolSpec(
    name="sleep",
    server="",
    description=(
        "Wait before going on, for up to 30 days. The task is parked meanwhile and costs nothing; "
        "it goes on earlier when somebody sends it a message."
    ),
    input_schema=_SLEEP_SCHEMA,
    schema_digest=schema_digest("sleep", _SLEEP_SCHEMA),
    hints=ToolHints(read_only=True, idempotent=True),
)


def _given(tool: str, name: str, arguments: str) -> Any:
    """One argument of a built-in, None if it isn't given. Raises ValueError for what is no JSON."""
    try:
        given = parsed(arguments)
    except ValueError as error:
        raise ValueError(f"the arguments of {tool} are not JSON: {error}") from error
    return given.get(name) if isinstance(given, dict) else None


def parse_sleep(arguments: str) -> float:
    """How long the model wants to sleep, in seconds. Raises ValueError in words that the model can act on."""
    seconds = _given("sleep", "seconds", arguments)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise ValueError('sleep needs a number of seconds: {"seconds": 60}')
    if not 0 < seconds <= LONGEST_SLEEP_SECONDS:
        raise ValueError(f"sleep takes more than 0 and at most {LONGEST_SLEEP_SECONDS:.0f} seconds, not {seconds}")
    return float(seconds)


def _sleep(plan: CallPlan, arguments: str) -> CallPlan:
    return replace(plan, timer_seconds=parse_sleep(arguments))


LONGEST_QUESTION = 16_384  # characters, as the schema of AuraApproval has it

_ASK_USER_SCHEMA = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_QUESTION,
            "description": "What you want to know, in full: whoever reads it sees nothing else of this conversation.",
        }
    },
    "required": ["question"],
    "additionalProperties": False,
}

ASK_USER = ToolSpec(
    name="ask_user",
    server="",
    description=(
        "Ask a person, and wait for the answer; it may take hours, and there may be none. "
        "The task is parked meanwhile and costs nothing."
    ),
    input_schema=_ASK_USER_SCHEMA,
    schema_digest=schema_digest("ask_user", _ASK_USER_SCHEMA),
    hints=ToolHints(read_only=True, idempotent=True),
)


def parse_question(arguments: str) -> str:
    """What the model wants to know. Raises ValueError in words that the model can act on."""
    question = _given("ask_user", "question", arguments)
    if not isinstance(question, str) or not question.strip():
        raise ValueError('ask_user needs a question: {"question": "which region?"}')
    if len(question) > LONGEST_QUESTION:
        raise ValueError(f"a question has at most {LONGEST_QUESTION} characters, not {len(question)}")
    return question


def _ask_user(plan: CallPlan, arguments: str) -> CallPlan:
    parse_question(arguments)
    if plan.sensitive:
        raise ValueError(
            "ask_user shows its question to people in an AuraApproval, and this agent declares it sensitive: "
            "it can't be called"
        )
    return replace(plan, question=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A tool of the operator's own.

    `planned` puts what the arguments (JSON text that fits the schema) say into a call's plan. It raises ValueError in
    words that the model can act on.
    """

    spec: ToolSpec
    planned: Callable[[CallPlan, str], CallPlan]


BUILT_IN: Mapping[str, BuiltIn] = {
    tool.spec.name: tool for tool in (BuiltIn(spec=SLEEP, planned=_sleep), BuiltIn(spec=ASK_USER, planned=_ask_user))
}
BUILT_IN_TOOLS: Mapping[str, ToolSpec] = {name: tool.spec for name, tool in BUILT_IN.items()}


def as_built_in(plan: CallPlan, arguments: str) -> CallPlan:
    """The plan of a call, made a built-in's if the tool is one; any other plan is returned as it is.

    A built-in touches nothing outside, so what an agent's rules say of effect and approval doesn't count for it.
    """
    tool = BUILT_IN.get(plan.tool)
    if tool is None:
        return plan
    plan = replace(plan, effect=Effect.READ, declared=True, approval=False)
    if plan.refused is not None:
        return plan
    try:
        return tool.planned(plan, arguments)
    except ValueError as error:
        return replace(plan, refused=str(error))
