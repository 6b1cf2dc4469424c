"""The limit: a conditional append to a status, one after the other, by the same client on the same server."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace

from aura_operator.core.entries import Usage
from aura_operator.core.journal import head_after
from aura_operator.core.ownership import Owner
from aura_operator.core.state import TaskState, Unresolved
from aura_operator.store.interface import Store, add
from aura_operator.store.resources import TASKS, new
from aura_operator.store.task_fields import StatusFields
from aura_operator.store.task_writes import JournalDelta, OwnedTask, append, claim
from aura_operator.store.view import task_ref, task_view
from aura_operator.worker.task.reporting import running

OWNER = Owner(worker="raw", incarnation="raw.1")
INLINE_BYTES = 8 * 1024  # so much stands in the status before it is dropped, as sealing does


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one append carries: lines, and `facts`: whether the status says anew how far the task is, as a step does."""

    lines: int
    line_bytes: int
    facts: bool = False


STEP = Shape(lines=1, line_bytes=400)
"""About a step's entries in one line: a model response, a result, an intent."""


class RawTask:
    """A task that nobody works on, whose journal grows by bare appends.

    Its namespace must be one that no controller of the cluster serves: its owner has no Lease, so it would be orphaned.
    """

    def __init__(self, store: Store, owned: OwnedTask) -> None:
        self._store = store
        self._owned = owned
        self._inline_bytes = 0

    @classmethod
    async def create(cls, store: Store, namespace: str) -> RawTask:
        # Paused: no worker of the same cluster takes it.
        spec = {"agentRef": {"name": "none"}, "input": "raw", "desired": "Pause"}
        name = f"raw-{uuid.uuid4().hex[:8]}"
        task = task_view(await store.create(TASKS, new(TASKS, namespace, name, spec=spec)))
        line = "x" * STEP.line_bytes
        head = head_after("", line)
        first: StatusFields = {"run": "raw"}
        taken = claim(task, OWNER, JournalDelta(lines=(line,), head=head), now=time.time(), first=first)
        await store.patch(taken.ref, taken.ops, subresource="status")
        ref = task_ref(namespace, name)
        return cls(
            store,
            OwnedTask(ref=ref, uid=task.uid, epoch=1, owner=OWNER, schema=1, next=1, head=head, entries=(line,)),
        )

    async def appends(self, count: int, shape: Shape = STEP) -> list[float]:
        """Milliseconds of each of `count` appends."""
        return [await self._append(shape) for _ in range(count)]

    async def _append(self, shape: Shape) -> float:
        lines = ("x" * shape.line_bytes,) * shape.lines
        head = self._owned.head
        for line in lines:
            head = head_after(head, line)
        fields = facts(self._owned.next) if shape.facts else {"summary": f"step {self._owned.next}"}
        write = append(self._owned, JournalDelta(lines=lines, head=head), fields=fields)
        started = time.perf_counter()
        await self._store.patch(write.ref, write.ops, subresource="status")
        took = (time.perf_counter() - started) * 1000
        self._owned = replace(self._owned, next=self._owned.next + shape.lines, head=head, entries=())
        self._inline_bytes += shape.lines * shape.line_bytes
        if self._inline_bytes >= INLINE_BYTES:
            await self._store.patch(write.ref, [add("/status/journal/entries", [])], subresource="status")
            self._inline_bytes = 0
        return took


def facts(step: int) -> StatusFields:
    """What changes in the status with each step of a task whose calls have effects."""
    state = TaskState(
        task="raw",
        run="raw",
        transcript=(),
        steps=step,
        turns=step,
        usage=Usage(requests=step),
        unresolved=(Unresolved(call=step, tool="x__tool", since=float(step)),),
    )
    return running(state, float(step))
