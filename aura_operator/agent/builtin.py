"""The tools that need no server: `sleep`. Owns what the model is told of them and how their arguments are read.

The timer itself belongs to core and the worker.
"""

from __future__ import annotations

import math

from aura_operator.agent.arguments import parsed
from aura_operator.agent.digest import schema_digest
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.effects import ToolHints

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


def parse_sleep(arguments: str) -> float:
    """How long the model wants to sleep, in seconds. Raises ValueError in words that the model can act on."""
    try:
        given = parsed(arguments)
    except ValueError as error:
        raise ValueError(f"the arguments of sleep are not JSON: {error}") from error
    seconds = given.get("seconds") if isinstance(given, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise ValueError('sleep needs a number of seconds: {"seconds": 60}')
    if not 0 < seconds <= LONGEST_SLEEP_SECONDS:
        raise ValueError(f"sleep takes more than 0 and at most {LONGEST_SLEEP_SECONDS:.0f} seconds, not {seconds}")
    return float(seconds)
