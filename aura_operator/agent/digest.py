"""The digest of what a tool accepts: it changes when, and only when, a call could mean something else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def schema_digest(name: str, input_schema: Mapping[str, Any]) -> str:
    """`sha256:<hex>` over the canonical JSON (sorted keys, no spaces, UTF-8) of a tool's name and input schema."""
    canonical = json.dumps(
        {"name": name, "inputSchema": input_schema}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return "sha256:" + hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()
