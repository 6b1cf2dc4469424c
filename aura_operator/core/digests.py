"""The digest of a call's arguments. Owns what is hashed: bytes, since the API server rewrites JSON values."""

from __future__ import annotations

from hashlib import sha256


def digest_of(arguments: str) -> str:
    """`sha256:<hex>` over the UTF-8 bytes of the arguments text."""
    return f"sha256:{sha256(arguments.encode()).hexdigest()}"
