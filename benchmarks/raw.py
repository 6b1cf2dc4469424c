"""The limit: a conditional append to a status, one after the other, by the same client on the same server."""

from __future__ import annotations

import time
import uuid

from aura_operator.core.journal import head_after
from aura_operator.core.ownership import Owner
from aura_operator.store.interface import add
from aura_operator.store.kube import KubeStore
from aura_operator.store.resources import TASKS, new
from aura_operator.store.task_writes import JournalDelta, OwnedTask, append, claim
from aura_operator.store.view import task_ref, task_view

OWNER = Owner(worker="raw", incarnation="raw.1")
LINE_BYTES = 400  # about a step's entries: a model response, a result, an intent
INLINE = 20  # so many lines (8 KB) stand in the status before they are dropped, as sealing does


async def appends(store: KubeStore, namespace: str, count: int) -> list[float]:
    """Milliseconds of each of `count` appends."""
    # Paused: no worker of the same cluster takes it.
    spec = {"agentRef": {"name": "none"}, "input": "raw", "desired": "Pause"}
    name = f"raw-{uuid.uuid4().hex[:8]}"
    manifest = await store.create(TASKS, new(TASKS, namespace, name, spec=spec))
    task = task_view(manifest)
    line = "x" * LINE_BYTES
    head = head_after("", line)
    first = {"run": "raw"}
    taken = claim(task, OWNER, line=line, schema=1, head=head, now=time.time(), first=first)
    await store.patch(taken.ref, taken.ops, subresource="status")
    owned = OwnedTask(
        ref=task_ref(namespace, name), uid=task.uid, epoch=1, owner=OWNER, schema=1, next=1, head=head, entries=(line,)
    )
    samples = []
    for _ in range(count):
        head = head_after(owned.head, line)
        write = append(owned, JournalDelta(lines=(line,), head=head), fields={"summary": f"step {owned.next}"})
        started = time.perf_counter()
        await store.patch(write.ref, write.ops, subresource="status")
        samples.append((time.perf_counter() - started) * 1000)
        owned = OwnedTask(
            ref=owned.ref, uid=task.uid, epoch=1, owner=OWNER, schema=1, next=owned.next + 1, head=head, entries=()
        )
        if owned.next % INLINE == 0:
            await store.patch(write.ref, [add("/status/journal/entries", [])], subresource="status")
    return samples
