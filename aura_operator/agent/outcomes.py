"""The outcome of a tool call, whoever made it: its text free of secrets and within the limit. Owns the cut."""

from __future__ import annotations

from aura_operator.agent.redaction import Redactor
from aura_operator.agent.specs import ToolOutcome
from aura_operator.core.entries import Outcome
from aura_operator.core.text import clean


def finished(status: Outcome, text: str, redactor: Redactor, limit_bytes: int) -> ToolOutcome:
    """An outcome whose text is scrubbed and cut at a character's boundary, with a mark that tells the full size."""
    text = clean(text)
    size_bytes = len(text) if text.isascii() else len(text.encode())
    # Scrubbing fifty megabytes to keep a few kilobytes would take seconds; a secret may straddle the cut, though.
    text = redactor.scrub(text[: limit_bytes + redactor.longest])
    kept = text.encode()
    if size_bytes <= limit_bytes and len(kept) <= limit_bytes:
        return ToolOutcome(status=status, text=text, size_bytes=size_bytes)
    mark = f"\n[cut: the result has {size_bytes} bytes, of which {limit_bytes} are allowed; ask for less of it]"
    room = max(0, limit_bytes - len(mark))
    return ToolOutcome(status=status, text=kept[:room].decode("utf-8", "ignore") + mark, size_bytes=size_bytes)
