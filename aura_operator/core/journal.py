"""The journal as bytes: a chain of lines, each sealed into the head that follows it.

Owns the hash chain and the rule of what is moved out of the status. What a line says is codec.py's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from aura_operator.errors import DamagedJournalError

GENESIS = ""  # the head of a journal that has no entry yet

INLINE_LIMIT_ENTRIES = 256  # half of what the schema of a status takes
INLINE_LIMIT_BYTES = 8 * 1024  # entries beyond this leave the status for an AuraCheckpoint
PAYLOAD_LIMIT_BYTES = 4 * 1024  # a payload beyond this gets an AuraCheckpoint of its own
PREVIOUS_SEGMENTS = 63  # each segment lists this many predecessors


def head_after(head: str, line: str) -> str:
    """The head once `line` follows a journal that ended in `head`: hex SHA-256 over both, as exact UTF-8 bytes."""
    return sha256(head.encode() + line.encode()).hexdigest()


def head_of(lines: Iterable[str], start: str = GENESIS) -> str:
    """The head after all of `lines`."""
    head = start
    for line in lines:
        head = head_after(head, line)
    return head


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A sealed stretch of a journal: entries `first` up to but without `next`, from `head_before` to `head`. `schema`
    is the highest that any entry up to its end needs."""

    first: int
    next: int
    head_before: str
    head: str
    lines: tuple[str, ...]
    schema: int
    previous: tuple[str, ...] = ()


def must_seal(inline_lines: Iterable[str]) -> bool:
    """Whether entries that would stand in the status are too much for it."""
    lines = list(inline_lines)
    return len(lines) > INLINE_LIMIT_ENTRIES or sum(len(line.encode()) for line in lines) > INLINE_LIMIT_BYTES


def verified(lines: tuple[str, ...], *, start: str, head: str, what: str) -> tuple[str, ...]:
    """The same lines, if they lead from `start` to `head`; raises DamagedJournalError if somebody changed them."""
    found = head_of(lines, start)
    if found != head:
        raise DamagedJournalError(
            f"{what}: the journal was changed from outside (its hash chain ends in {found[:12]}…, the status says "
            f"{head[:12]}…); the task can't go on. Its entries are still there: look at them, then start the task anew"
        )
    return lines
