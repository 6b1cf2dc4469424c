"""Checks what the model wants to pass to a tool, before anybody is asked to approve it or anything is sent.

Owns the check and its words, which are for the model; it calls nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from cachetools import LRUCache
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from aura_operator.agent.specs import ToolSpec

_LONGEST_LIST = 40  # names: beyond that the model is better served by the list it already has
_LONGEST_DETAIL = 300  # characters of a violation, which quotes the offending value
_DEEPEST = 100  # levels of nesting: MCP's client gives up, with an exception, at some 250


def unknown_tool(tool: str, known: Iterable[str]) -> str:
    """What the model is told when it calls a tool that isn't there."""
    names = sorted(known)
    listed = ", ".join(names[:_LONGEST_LIST]) or "none"
    more = f" and {len(names) - _LONGEST_LIST} more" if len(names) > _LONGEST_LIST else ""
    return f"unknown tool {tool!r}; there are: {listed}{more}"


def parsed(arguments: str) -> Any:
    """The value of an arguments text. Providers write "no arguments" as an empty text too. Raises ValueError.

    Refuses what would arrive as something else than the text that a person reads and approves.
    """
    if not arguments.strip():
        return {}
    value = json.loads(
        arguments, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_without_duplicates
    )
    if _depth(value) > _DEEPEST:
        raise ValueError(f"they are nested more than {_DEEPEST} levels deep")
    if "\\ud" in arguments.lower():
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair can't be sent: UnicodeEncodeError
    return value


def check(arguments: str, spec: ToolSpec) -> str | None:
    """What is wrong with the arguments, in words for the model; None if the tool accepts them."""
    try:
        given = parsed(arguments)
    except (ValueError, RecursionError) as error:
        return f"arguments are not JSON: {error}"
    if not isinstance(given, dict):
        return f"arguments of {spec.name} must be a JSON object, not {_json_type(given)}"
    violation = violation_of(given, spec.input_schema)
    return f"arguments of {spec.name} don't fit its schema: {violation}" if violation else None


def violation_of(value: Any, schema: Mapping[str, Any]) -> str | None:
    """The violation of a JSON schema that says most, or None. A schema that is itself broken forbids nothing.

    `schema` must not be changed afterwards: its validator is kept.
    """
    validator = _validator_of(schema)
    if validator is None:
        return None
    try:
        error = best_match(validator.iter_errors(value))
    except (Unresolvable, RecursionError):
        return None  # a reference out of the document: the server must check for itself
    if error is None:
        return None
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    message = _shortened(error.message)
    return f"{where.lstrip('.')}: {message}" if where else message


def _shortened(message: str) -> str:
    """Without its middle where it is long: it begins with the value, and what is wrong with it stands at the end."""
    if len(message) <= _LONGEST_DETAIL:
        return message
    return f"{message[: _LONGEST_DETAIL // 2]} … {message[-_LONGEST_DETAIL // 2 :]}"


def _validator_of(schema: Mapping[str, Any]) -> Validator | None:
    known = _KNOWN.get(id(schema))
    if known is not None:
        return known[1]
    validator = _validator(json.dumps(schema, sort_keys=True))
    _KNOWN[id(schema)] = (schema, validator)
    return validator


_KNOWN: LRUCache[int, tuple[Mapping[str, Any], Validator | None]] = LRUCache(maxsize=1024)
"""By the identity of a schema, which is kept along so that no other one gets it: its text costs as much as a check."""


@lru_cache(maxsize=1024)
def _validator(schema: str) -> Validator | None:
    """Compiling costs some sixty times what a check does, and the same few schemas come back all the time."""
    document = json.loads(schema)
    validator_class = validator_for(document)
    try:
        validator_class.check_schema(document)
    except SchemaError:
        return None
    return validator_class(document, registry=Registry())


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")  # it would be sent as null
    return number


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:40]!r} is given twice")
    return fields


def _depth(value: Any) -> int:
    """How many arrays and objects stand in each other. Not recursive: the text is whatever a model wrote."""
    depth = 0
    level = [value]
    while level := [part for part in level if isinstance(part, dict | list)]:
        depth += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return depth


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "an array"
