"""The ground that store checks stand on, and one of each of the operator's writes, ready to be sent. Set-up only."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from aura_operator.clock import Clock
from aura_operator.core.approvals import Decision
from aura_operator.core.entries import Proof, Verdict
from aura_operator.core.journal import head_of
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.core.ownership import Owner
from aura_operator.errors import (
    ConflictError,
    NotFoundError,
)
from aura_operator.store import task_repairs, task_writes
from aura_operator.store.approval_writes import count_votes, settle_approval
from aura_operator.store.approvals import approval_ref, approval_view
from aura_operator.store.commit import commit
from aura_operator.store.interface import Store
from aura_operator.store.resources import APPROVALS, TASKS, Manifest, Ref, new
from aura_operator.store.task_fields import ResultFields, StatusFields, Wait
from aura_operator.store.task_writes import JournalDelta, OwnedTask
from aura_operator.store.view import TaskView, task_view
from aura_operator.store.writes import Write

A = Owner(worker="a", incarnation="pod-a.1")
B = Owner(worker="b", incarnation="pod-b.1")
NOW = 1_800_000_000.0
APPROVAL_WAIT = Wait(kind=WaitKind.APPROVAL, name="yes", until=NOW + 600)
TIMER_WAIT = Wait(kind=WaitKind.TIMER, name="nap", until=NOW + 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a check runs. `user_store` acts for users: its requests never fail."""

    store: Store
    user_store: Store
    clock: Clock
    namespace: str

    async def task(self, **spec: Any) -> TaskView:
        body = {"agentRef": {"name": "sre"}, "input": "go", **spec}
        name = f"t-{uuid.uuid4().hex[:10]}"
        return task_view(await self.user_store.create(TASKS, new(TASKS, self.namespace, name, spec=body)))

    async def approval(self, task: TaskView, **terms: Any) -> Ref:
        spec = {
            "request": {
                "task": task.ref.name,
                "run": "run-1",
                "call": 1,
                "kind": "ToolCall",
                "tool": "k8s__delete",
                "effect": "Once",
                "arguments": "{}",
                "digest": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            },
            "approvers": {"users": ["bob"]},
            "requester": "alice",
            "expiresAt": "2126-11-29T03:40:00Z",
            **terms,
        }
        name = f"{task.ref.name}-1"
        await self.user_store.create(APPROVALS, new(APPROVALS, self.namespace, name, spec=spec))
        return approval_ref(self.namespace, name)

    async def read(self, ref: Ref) -> Manifest:
        return await self.user_store.get(ref)

    async def view(self, ref: Ref) -> TaskView:
        return task_view(await self.read(ref))

    async def do(self, write: Write) -> Manifest:
        return await commit(self.store, write, self.clock)

    async def claimed(self, owner: Owner = A, **spec: Any) -> TaskView:
        task = await self.task(**spec)
        return task_view(await self.do(claim(task, owner)))

    async def parked(self, *waits: Wait) -> TaskView:
        held = owned(await self.claimed(), A)
        return task_view(await self.do(park(held, *waits)))


# The writes, with what doesn't matter filled in


def claim(task: TaskView, owner: Owner) -> Write:
    line = f'{{"k":"claimed","epoch":{task.epoch + 1},"worker":"{owner.worker}"}}'
    first: StatusFields = {"run": str(uuid.uuid4()), "startedAt": "2027-01-15T08:00:00Z", "agentRevision": "sre-1"}
    head = head_of([line], task.head)
    fields: StatusFields = {"summary": "claimed"}
    delta = JournalDelta(lines=(line,), head=head)
    return task_writes.claim(task, owner, delta, now=NOW, first=first, fields=fields)


def owned(task: TaskView, owner: Owner) -> OwnedTask:
    assert task.journal is not None
    journal = task.journal
    return OwnedTask(
        ref=task.ref,
        uid=task.uid,
        epoch=task.epoch,
        owner=owner,
        schema=journal.schema,
        next=journal.next,
        head=journal.head,
        entries=journal.entries,
        sealed=None if journal.sealed is None else (journal.sealed, journal.sealed_next),
    )


def delta(held: OwnedTask, *lines: str) -> JournalDelta:
    return JournalDelta(lines=lines, head=head_of(lines, held.head))


def append(held: OwnedTask, *lines: str) -> Write:
    return task_writes.append(held, delta(held, *lines), fields={"summary": "goes on"})


def park(held: OwnedTask, *waits: Wait, fired: tuple[str, ...] = ()) -> Write:
    grown = delta(held, '{"k":"asked"}')
    return task_writes.park(held, grown, waiting_for=waits, fired=fired, now=NOW, fields={"summary": "parked"})


def release(held: OwnedTask) -> Write:
    return task_writes.release(held, delta(held), now=NOW, fields={"summary": "released"})


def finish(held: OwnedTask, phase: Phase = Phase.SUCCEEDED) -> Write:
    grown = delta(held, f'{{"k":"finished","phase":"{phase.value}"}}')
    result: ResultFields = {"text": "42"} if phase is Phase.SUCCEEDED else {}
    return task_writes.finish(held, grown, phase=phase, result=result, now=NOW, fields={"reason": "Done"})


def orphan(task: TaskView, proof: Proof = Proof.LEASE_EXPIRED) -> Write:
    return task_repairs.orphan(task, proof, now=NOW, fields={"summary": "orphaned"})


def fire(task: TaskView, name: str) -> Write:
    write = task_repairs.fire(task, name, fields={"summary": f"woken by {name}"})
    assert write is not None
    return write


def settle(approval: Manifest, verdict: Verdict, reason: str) -> Write:
    view = approval_view(approval)
    decision = Decision(verdict=verdict, reason=reason)
    return settle_approval(view.ref, view.uid, decision, votes="0/1", now=NOW)


# One of each, on an object that is ready for it


async def _claim_write(ground: Ground) -> Write:
    return claim(await ground.task(), A)


async def _second_claim_write(ground: Ground) -> Write:
    held = owned(await ground.claimed(), A)
    return claim(task_view(await ground.do(release(held))), B)


async def _append_write(ground: Ground) -> Write:
    return append(owned(await ground.claimed(), A), '{"k":"one"}', '{"k":"two"}')


async def _sealing_write(ground: Ground) -> Write:
    held = owned(await ground.claimed(), A)
    return task_writes.append(held, replace(delta(held, '{"k":"one"}'), sealed="segment-1"), fields={})


async def _park_write(ground: Ground) -> Write:
    return park(owned(await ground.claimed(), A), APPROVAL_WAIT, TIMER_WAIT)


async def _release_write(ground: Ground) -> Write:
    return release(owned(await ground.claimed(), A))


async def _finish_write(ground: Ground) -> Write:
    return finish(owned(await ground.claimed(), A))


async def _fail_write(ground: Ground) -> Write:
    return finish(owned(await ground.claimed(), A), Phase.FAILED)


async def _cancel_write(ground: Ground) -> Write:
    return finish(owned(await ground.claimed(desired="Cancel"), A), Phase.CANCELLED)


async def _fire_write(ground: Ground) -> Write:
    return fire(await ground.parked(APPROVAL_WAIT, TIMER_WAIT), "nap")


async def _orphan_write(ground: Ground) -> Write:
    return orphan(await ground.claimed())


async def _remark_write(ground: Ground) -> Write:
    return task_repairs.remark(await ground.task(), fields={"summary": "no worker is live"})


async def _settle_write(ground: Ground) -> Write:
    return settle(await ground.read(await ground.approval(await ground.task())), Verdict.DENIED, "not today")


async def _count_write(ground: Ground) -> Write:
    approval = await ground.read(await ground.approval(await ground.task()))
    view = approval_view(approval)
    return count_votes(view.ref, view.uid, "0/1")


WRITES: dict[str, Callable[[Ground], Awaitable[Write]]] = {
    "claim": _claim_write,
    "second claim": _second_claim_write,
    "append": _append_write,
    "append that seals": _sealing_write,
    "park": _park_write,
    "release": _release_write,
    "finish": _finish_write,
    "fail": _fail_write,
    "cancel": _cancel_write,
    "fire": _fire_write,
    "orphan": _orphan_write,
    "remark": _remark_write,
    "settle": _settle_write,
    "count": _count_write,
}
"""Every write of task_writes.py, made on a fresh object that it will land on."""


async def refused(ground: Ground, write: Write) -> bool:
    try:
        await ground.do(write)
    except (ConflictError, NotFoundError):
        return True
    return False


def content(manifest: Manifest) -> Manifest:
    """The object without what every request may touch."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key in ("uid", "name", "generation")}
    return {"metadata": metadata, "spec": manifest["spec"], "status": manifest["status"]}
