"""The digests that plans and approvals hold to. Owns what is hashed: bytes, as the API server rewrites JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from aura_operator.core.text import clean


def digest_of(arguments: str) -> str:
    """`sha256:<hex>` over the UTF-8 bytes of the arguments text."""
    return f"sha256:{sha256(arguments.encode()).hexdigest()}"


def schema_digest(name: str, input_schema: Mapping[str, Any]) -> str:
    """`sha256:<hex>` over the canonical JSON (sorted keys, no spaces, UTF-8) of a tool's name and input schema.

    It changes when, and only when, a call could mean something else.
    """
    canonical = json.dumps(
        {"name": name, "inputSchema": input_schema}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return digest_of(clean(canonical))
