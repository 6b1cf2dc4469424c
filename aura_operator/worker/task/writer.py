"""Writes one task's journal: entries are recorded at once and written behind, in as few requests as possible.

Owns what is durable and what isn't yet, sealing, and the last write of an ownership (park, release, finish). Must not
know what entries mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from aura_operator.clock import Clock
from aura_operator.core.journal import GENESIS, head_of, must_seal
from aura_operator.errors import ConflictError, FencedError
from aura_operator.store.commit import commit
from aura_operator.store.interface import Store
from aura_operator.store.journal_reads import SealedSegment
from aura_operator.store.overflow import create_retrying
from aura_operator.store.resources import Manifest, Resource
from aura_operator.store.task_fields import StatusFields
from aura_operator.store.task_writes import JournalDelta, OwnedTask, append
from aura_operator.store.writes import Write
from aura_operator.worker.task.sealing import sealed

LINGER_SECONDS = 0.01
"""How long an entry may wait for company before it is written, unless its recorder says otherwise. A barrier doesn't
wait; a result that nobody waits for travels with the next intent."""

Objects = tuple[tuple[Resource, Manifest], ...]
"""Objects that entries refer to; they are created before the entries are written."""


class JournalWriter:
    """The journal of one task in the hands of its owner. One request is under way at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        task: Manifest,
        owned: OwnedTask,
        *,
        segments: Sequence[SealedSegment],
        fields: Callable[[], StatusFields],
        answered: Callable[[Manifest], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._task = task
        self._durable = owned
        self._segments = [segment.name for segment in segments]
        self._sealed_head = segments[-1].segment.head if segments else GENESIS
        self._fields = fields
        self._told: dict[str, object] = {}
        self._answered = answered
        self._lines: list[str] = []
        self._schema = owned.schema  # that the journal needs with the lines
        self._objects: list[tuple[Resource, Manifest]] = []
        self._recorded = owned.next
        self._under_way = owned.next  # how many entries there will be once the request under way has landed
        self._due = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []  # barriers, by the position that they wait for
        self._writing = asyncio.Lock()

    @property
    def recorded(self) -> int:
        """How many entries the journal has, written or not."""
        return self._recorded

    @property
    def durable(self) -> OwnedTask:
        """What is certainly written."""
        return self._durable

    def record(
        self, line: str, objects: Objects = (), *, schema: int = 1, within_seconds: float = LINGER_SECONDS
    ) -> int:
        """Adds a line; returns the number of entries up to and with it. It is written later, begun within that time.
        `schema` is what the line needs."""
        self._lines.append(line)
        self._objects.extend(objects)
        self._schema = max(self._schema, schema)
        self._recorded += 1
        loop = asyncio.get_running_loop()
        due = loop.time() + within_seconds
        if self._linger is None or self._linger.when() > due:
            self._no_linger()
            self._linger = loop.call_at(due, self._due.set)
        return self._recorded

    async def barrier(self, position: int | None = None) -> None:
        """Returns once all entries recorded so far (or those up to `position`) are written."""
        wanted = self._recorded if position is None else position
        if self._durable.next >= wanted:
            return
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((wanted, written))
        if wanted > self._under_way:
            self._due.set()  # else the request under way brings it, and another one after it would be for nothing
        await written

    async def run(self) -> None:
        """Writes behind until cancelled. Raises FencedError when the task has another owner, or none."""
        while True:
            await self._due.wait()
            async with self._writing:
                # Cleared before the lines are taken: what comes during the request makes the next round.
                self._due.clear()
                self._no_linger()
                if self._lines:
                    await self._append()

    async def close(self, last: Callable[[OwnedTask, JournalDelta], Write]) -> Manifest:
        """Writes what is unwritten together with the end of the ownership; the object after it."""
        async with self._writing:
            return await self._write(last)

    async def _append(self) -> None:
        # Taken together with the lines: an effect leaves `unresolved` in the very write that brings its result.
        wanted = self._fields()
        news = {name: value for name, value in wanted.items() if self._told.get(name) != value}
        await self._write(lambda owned, delta: append(owned, delta, fields=news))
        self._told |= news

    async def _write(self, make: Callable[[OwnedTask, JournalDelta], Write]) -> Manifest:
        lines, objects, schema = tuple(self._lines), tuple(self._objects), self._schema
        owned = self._durable
        self._under_way = owned.next + len(lines)
        head = head_of(lines, owned.head)
        for resource, manifest in objects:
            await create_retrying(self._store, resource, manifest, self._clock)
        delta = JournalDelta(lines=lines, head=head, schema=schema)
        name: str | None = None
        if must_seal((*owned.entries, *lines)):
            name = await sealed(
                self._store,
                self._clock,
                self._task,
                owned,
                delta,
                head_before=self._sealed_head,
                previous=self._segments,
            )
            delta = replace(delta, sealed=name)
        try:
            manifest = await commit(self._store, make(owned, delta), self._clock)
        except ConflictError as error:
            raise FencedError(str(error)) from error
        del self._lines[: len(lines)]
        del self._objects[: len(objects)]
        following = owned.next + len(lines)
        if name is None:
            entries = (*owned.entries, *lines)
            self._durable = replace(owned, schema=schema, next=following, head=head, entries=entries)
        else:
            self._segments.append(name)
            self._sealed_head = head
            self._durable = replace(
                owned, schema=schema, next=following, head=head, entries=(), sealed=(name, following)
            )
        self._release_barriers()
        self._answered(manifest)
        return manifest

    def _release_barriers(self) -> None:
        durable = self._durable.next
        for wanted, written in self._waiting:
            if wanted <= durable and not written.done():
                written.set_result(None)
        self._waiting = [(wanted, written) for wanted, written in self._waiting if not written.done()]
        if self._waiting:
            self._due.set()

    def _no_linger(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
