"""Reads a journal back: sealed segments, then what stands in the status, verified link by link.

Owns reading; what lines and entries mean is core's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from aura_operator.clock import Clock
from aura_operator.core import codec
from aura_operator.core.entries import Entry
from aura_operator.core.journal import GENESIS, Segment, verified
from aura_operator.errors import DamagedJournalError, NewerJournalError
from aura_operator.store.interface import Store
from aura_operator.store.overflow import read_segment
from aura_operator.store.view import TaskView


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSegment:
    """A sealed part of a journal, and the AuraCheckpoint that it stands in."""

    name: str
    segment: Segment


async def read_journal(store: Store, task: TaskView, clock: Clock) -> tuple[list[SealedSegment], tuple[str, ...]]:
    """All sealed segments in order, and the lines in the status; () before the first claim.

    Raises NewerJournalError for a newer format, DamagedJournalError if a part is missing or was changed.
    """
    journal = task.journal
    if journal is None:
        return [], ()
    _read_by_this_version(journal.schema, str(task.ref))
    sealed = await _segments(store, task.ref.namespace, journal.sealed, clock) if journal.sealed else []
    head, position = GENESIS, 0
    for part in sealed:
        segment = part.segment
        _read_by_this_version(segment.schema, f"{task.ref}, {part.name}")
        if segment.first != position or segment.head_before != head:
            raise DamagedJournalError(f"{task.ref}: {part.name}, which starts at entry {segment.first}, doesn't fit in")
        verified(segment.lines, start=head, head=segment.head, what=str(task.ref))
        head, position = segment.head, segment.next
    verified(journal.entries, start=head, head=journal.head, what=str(task.ref))
    if position + len(journal.entries) != journal.next:
        raise DamagedJournalError(f"{task.ref}: {position + len(journal.entries)} entries are there of {journal.next}")
    return sealed, journal.entries


def _read_by_this_version(schema: int, what: str) -> None:
    if not codec.known(schema):
        raise NewerJournalError(f"{what}: the journal needs schema {schema}, and this version knows {codec.SCHEMA}")


async def read_entries(store: Store, task: TaskView, clock: Clock) -> list[Entry]:
    """The whole journal as entries, in order. Raises as `read_journal` and `decode`."""
    sealed, inline = await read_journal(store, task, clock)
    return [codec.decode(line) for line in lines_of(sealed, inline)]


def lines_of(sealed: Sequence[SealedSegment], inline: Sequence[str]) -> list[str]:
    """All lines of a journal that was read, in order."""
    return [*(line for part in sealed for line in part.segment.lines), *inline]


async def _segments(store: Store, namespace: str, last: str, clock: Clock) -> list[SealedSegment]:
    """Each segment names those before it, so a long journal takes one round of reads for every 64 of them."""

    async def read(name: str) -> SealedSegment:
        return SealedSegment(name=name, segment=await read_segment(store, namespace, name, clock))

    parts = [await read(last)]
    while parts[0].segment.first > 0 and parts[0].segment.previous:
        earliest = parts[0]
        parts[:0] = await asyncio.gather(*(read(name) for name in earliest.segment.previous))
        if parts[0].segment.first >= earliest.segment.first:
            raise DamagedJournalError(
                f"AuraCheckpoint {namespace}/{earliest.name} names {parts[0].name} as earlier than itself"
            )
    return parts
