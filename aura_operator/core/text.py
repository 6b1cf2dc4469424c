"""Text as this project writes it: UTF-8 whatever a model or a server produced, JSON compact. Owns nothing else."""

from __future__ import annotations

from typing import Any

import orjson


def clean(text: str) -> str:
    """The text with lone surrogates replaced: they have no UTF-8, so neither a hash nor a request could hold them."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def dumps(value: Any) -> str:
    """Compact JSON text of a value; keeps the order of keys, replaces lone surrogates."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return orjson.dumps(_cleaned(value)).decode()


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value
