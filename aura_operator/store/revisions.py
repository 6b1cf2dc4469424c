"""The names of agent revisions. Owns how one follows from the spec, so that worker and controller say the same."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from aura_operator.core.text import dumps


def revision_name(agent: str, spec: dict[str, Any]) -> str:
    """`<agent>-<digest>`: the same for the same spec, another after an edit."""
    return f"{agent}-{sha256(dumps(spec).encode()).hexdigest()[:10]}"
