"""Reads a task back from its journal: what a run starts from. What the lines mean is core's."""

from __future__ import annotations

from dataclasses import dataclass

from aura_operator.clock import Clock
from aura_operator.core.codec import decode
from aura_operator.core.fold import fold
from aura_operator.core.state import TaskState, initial
from aura_operator.errors import DamagedJournalError
from aura_operator.store.interface import Store
from aura_operator.store.journal_reads import SealedSegment, lines_of, read_journal
from aura_operator.store.view import TaskView
from aura_operator.worker.task.payloads import Payloads


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A task as its journal tells it, with the texts that it refers to."""

    state: TaskState
    segments: list[SealedSegment]
    payloads: Payloads


async def recall(store: Store, clock: Clock, task: TaskView) -> Recalled:
    """Raises NewerJournalError, DamagedJournalError, StoreError."""
    segments, inline = await read_journal(store, task, clock)
    entries = (decode(line) for line in lines_of(segments, inline))
    start = initial(task=task.ref.name, run=task.run, user_input=task.user_input)
    try:
        state = fold(start, entries)
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # a field of another type than it is written
        raise DamagedJournalError(f"{task.ref}: the journal has an entry that no version wrote ({error!r})") from error
    payloads = Payloads(task.manifest)
    await payloads.load(store, state.items, clock)
    return Recalled(state=state, segments=segments, payloads=payloads)
