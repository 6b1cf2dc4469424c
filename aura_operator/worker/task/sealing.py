"""Moves the entries that stand in a status into an AuraCheckpoint. Owns the object's creation, not the write that
drops them from the status: that one names it."""

from __future__ import annotations

from collections.abc import Sequence

from aura_operator.clock import Clock
from aura_operator.core.journal import GENESIS, PREVIOUS_SEGMENTS, Segment, must_seal
from aura_operator.store.interface import Store
from aura_operator.store.journal_reads import read_journal
from aura_operator.store.overflow import create_retrying, segment_object
from aura_operator.store.resources import CHECKPOINTS, Manifest
from aura_operator.store.task_writes import JournalDelta, OwnedTask
from aura_operator.store.view import TaskView


async def sealed(
    store: Store,
    clock: Clock,
    task: Manifest,
    owned: OwnedTask,
    delta: JournalDelta,
    *,
    head_before: str,
    previous: Sequence[str],
) -> str:
    """The name of the segment that holds all entries that would stand in the status after `delta`; it exists then.

    `head_before` is the head of the last segment, `previous` the names of the segments, the last one last.
    """
    segment = Segment(
        first=owned.sealed[1] if owned.sealed else 0,
        next=owned.next + len(delta.lines),
        head_before=head_before,
        head=delta.head,
        lines=(*owned.entries, *delta.lines),
        schema=max(owned.schema, delta.schema),
        previous=tuple(previous[-PREVIOUS_SEGMENTS:]),
    )
    manifest = segment_object(task, segment)
    await create_retrying(store, CHECKPOINTS, manifest, clock)
    name: str = manifest["metadata"]["name"]
    return name


async def nothing_new(store: Store, clock: Clock, task: TaskView, owned: OwnedTask) -> JournalDelta:
    """The delta of a write that adds no entry. It seals where too much stands in the status: each claim adds an entry,
    and a task that is claimed and given back again and again would fill it.

    Raises DamagedJournalError, NewerJournalError if it has to seal and the segments before can't be read.
    """
    delta = JournalDelta(lines=(), head=owned.head, schema=owned.schema)
    if not must_seal(owned.entries):
        return delta
    segments, _ = await read_journal(store, task, clock)
    name = await sealed(
        store,
        clock,
        task.manifest,
        owned,
        delta,
        head_before=segments[-1].segment.head if segments else GENESIS,
        previous=[segment.name for segment in segments],
    )
    return JournalDelta(lines=(), head=owned.head, schema=owned.schema, sealed=name)
