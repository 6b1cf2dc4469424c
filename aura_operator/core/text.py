"""JSON text as this project writes it: compact, in UTF-8 whatever a model produced. Owns nothing else."""

from __future__ import annotations

from typing import Any

import orjson


def dumps(value: Any) -> str:
    """Compact JSON text of a value; keeps the order of keys, replaces lone surrogates."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_without_surrogates(value)).decode()


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
