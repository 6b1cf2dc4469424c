"""Text that can be hashed and sent: whatever a model or a server wrote, made valid UTF-8. Owns nothing else."""

from __future__ import annotations


def clean(text: str) -> str:
    """The text with lone surrogates replaced: they have no UTF-8, so neither a hash nor a request could hold them."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
