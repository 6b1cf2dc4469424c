"""The ways in which a call's result is kept: what the ledger's `read` is called with, and the rule for it."""

from __future__ import annotations

from typing import Any

LARGE = {"key": "r", "bytes": 6000}  # beyond what a journal line holds
KEPT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"key": "r"}, {}),
    (LARGE, {}),
    ({"key": "r"}, {"sensitive": True}),
    (LARGE, {"sensitive": True}),
]
KEPT_NAMES = ["inline", "large", "sensitive", "large and sensitive"]
