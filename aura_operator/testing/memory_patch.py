"""JSON Patch (RFC 6902) as the API server applies it. Owns add, replace, remove and test; all or nothing.

A test on null holds for a path that is missing, as the server has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import orjson

from aura_operator.errors import PreconditionFailedError
from aura_operator.store.interface import Op
from aura_operator.store.resources import Manifest

T = TypeVar("T")

_MISSING = object()


def patched(manifest: Manifest, ops: Sequence[Op], what: str) -> Manifest:
    """A copy of the object after all operations. Raises PreconditionFailedError if a test fails or a path is gone."""
    result: Manifest = copied(manifest)
    for op in ops:
        _apply(result, op, what)
    return result


def copied(value: T) -> T:
    """The value as it comes back from JSON: nothing in it is shared with the original."""
    return cast(T, orjson.loads(orjson.dumps(value)))


def _apply(document: Any, op: Op, what: str) -> None:
    *way, last = [token.replace("~1", "/").replace("~0", "~") for token in op.path.split("/")[1:]]
    parent = document
    for token in way:
        parent = _child(parent, token)
    if op.op == "test":
        found = _child(parent, last)
        if (None if found is _MISSING else found) != op.value:
            raise PreconditionFailedError(
                f"{what}: the server rejected our request: testing path {op.path} failed (422)"
            )
        return
    if parent is _MISSING:
        raise PreconditionFailedError(f"{what}: the parent of {op.path} is missing (422)")
    if not _changed(parent, last, op):
        raise PreconditionFailedError(f"{what}: {op.op} of {op.path}: no such path (422)")


def _child(parent: Any, token: str) -> Any:
    if isinstance(parent, dict):
        return parent.get(token, _MISSING)
    if isinstance(parent, list) and token.isdigit() and int(token) < len(parent):
        return parent[int(token)]
    return _MISSING


def _changed(parent: Any, token: str, op: Op) -> bool:
    """Whether the operation found its place; changes `parent` if so."""
    value = copied(op.value)
    if isinstance(parent, list):
        return _changed_list(parent, token, op.op, value)
    if not isinstance(parent, dict):
        return False
    if op.op == "remove":
        return parent.pop(token, _MISSING) is not _MISSING
    parent[token] = value  # replace, too, adds what isn't there (seen on 1.36; the RFC would refuse)
    return True


def _changed_list(parent: list[Any], token: str, op: str, value: Any) -> bool:
    if op == "add" and token == "-":
        parent.append(value)
        return True
    if not token.isdigit() or int(token) > len(parent) - (op != "add"):
        return False
    match op:
        case "add":
            parent.insert(int(token), value)
        case "replace":
            parent[int(token)] = value
        case _:
            del parent[int(token)]
    return True
