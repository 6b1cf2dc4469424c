"""A task in an owner's hands, and the writer of its journal, on a store in memory. Owns no test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aura_operator.store.journal_reads import read_journal
from aura_operator.store.resources import TASKS, Manifest
from aura_operator.store.task_fields import StatusFields
from aura_operator.store.view import TaskView
from aura_operator.testing.clock import FakeClock
from aura_operator.testing.faulty import Call, FaultyStore, calls
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.store_checks_writes import A, Ground, owned
from aura_operator.worker.task.writer import JournalWriter

PATCHES = calls("patch", TASKS)


class Desk:
    """A task of A's with a writer on it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory, self.clock)
        self.ground = Ground(store=self.memory, user_store=self.memory, clock=self.clock, namespace="n")
        self.fields: StatusFields = {}
        self.answers: list[Manifest] = []
        self.extras_taken: list[int] = []

    async def open(self, task: TaskView | None = None) -> JournalWriter:
        self.task = task or await self.ground.claimed()
        segments, _ = await read_journal(self.memory, self.task, self.clock)
        self.writer = JournalWriter(
            self.store,
            self.clock,
            self.task.manifest,
            owned(self.task, A),
            segments=segments,
            fields=self._fields,
            answered=self.answers.append,
        )
        return self.writer

    def _fields(self) -> StatusFields:
        self.extras_taken.append(self.writer.recorded)
        return self.fields.copy()

    async def lines(self) -> list[str]:
        """The journal as a recovery would read it."""
        segments, inline = await read_journal(self.memory, await self.ground.view(self.task.ref), self.clock)
        return [line for part in segments for line in part.segment.lines] + list(inline)

    def patches(self) -> list[Call]:
        return [call for call in self.store.log if PATCHES(call)]


@asynccontextmanager
async def writing(desk: Desk, task: TaskView | None = None) -> AsyncIterator[JournalWriter]:
    writer = await desk.open(task)
    async with asyncio.TaskGroup() as group:
        work = group.create_task(writer.run())
        yield writer
        work.cancel()


def line(number: int, size_bytes: int = 0) -> str:
    return f'{{"k":"x","n":{number},"pad":"{"p" * size_bytes}"}}'
