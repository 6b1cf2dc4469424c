"""The tools that need no server, as a table. Owns what the model is told of them and how their arguments become a plan.

What the plan then does (the timer of a sleep, a question to a person) belongs to core and the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from aura_operator.agent.arguments import parsed
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.digests import schema_digest
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


def sleep_seconds(arguments: str) -> float:
    """How long the model wants to sleep. `arguments` fit the schema of SLEEP."""
    return float(parsed(arguments)["seconds"])


def _sleep(plan: CallPlan, arguments: str) -> CallPlan:
    return replace(plan, timer_seconds=sleep_seconds(arguments))


LONGEST_QUESTION = 16_384  # characters, as the schema of AuraApproval has it

_ASK_USER_SCHEMA = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_QUESTION,
            "pattern": r"\S",
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


def question_of(arguments: str) -> str:
    """What the model wants to know. `arguments` fit the schema of ASK_USER."""
    return str(parsed(arguments)["question"])


def _ask_user(plan: CallPlan, arguments: str) -> CallPlan:
    if plan.sensitive:
        raise ValueError(
            "ask_user shows its question to people in an AuraApproval, and this agent declares it sensitive: "
            "it can't be called"
        )
    return replace(plan, question=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A tool of the operator's own.

    `planned` puts what the arguments say into a call's plan: JSON text that was checked against the schema, which alone
    says what may be given. Raises ValueError, in words that the model can act on, where no arguments would do.
    """

    spec: ToolSpec
    planned: Callable[[CallPlan, str], CallPlan]


BUILT_IN: Mapping[str, BuiltIn] = {
    tool.spec.name: tool for tool in (BuiltIn(spec=SLEEP, planned=_sleep), BuiltIn(spec=ASK_USER, planned=_ask_user))
}
BUILT_IN_TOOLS: Mapping[str, ToolSpec] = {name: tool.spec for name, tool in BUILT_IN.items()}


def as_built_in(plan: CallPlan, arguments: str) -> CallPlan:
    """The plan of a call, made a built-in's if the tool is one; any other plan is returned as it is.

    A built-in touches nothing outside, so what an agent's rules say of effect and approval doesn't count for it. The
    arguments of a plan that isn't refused fit the tool's schema.
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
