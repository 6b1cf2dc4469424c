"""The ground that store checks stand on, and one of each of the operator's writes, ready to be sent. Set-up only."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from aura_operator.core.absorb import Decision
from aura_operator.core.entries import Proof, Verdict
from aura_operator.core.journal import head_of
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.core.ownership import Owner
from aura_operator.errors import (
    ConflictError,
    NotFoundError,
)
from aura_operator.store import contract
from aura_operator.store.approvals import approval_ref, approval_view
from aura_operator.store.client import Store
from aura_operator.store.clock import Clock
from aura_operator.store.commit import commit
from aura_operator.store.contract import Growth, Holding, Write
from aura_operator.store.resources import APPROVALS, TASKS, Manifest, Ref, new
from aura_operator.store.settling import count_votes, settle_approval
from aura_operator.store.view import TaskView, Wait, task_view

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
        held = holding(await self.claimed(), A)
        return task_view(await self.do(park(held, *waits)))


# The writes, with what doesn't matter filled in


def claim(task: TaskView, owner: Owner) -> Write:
    line = f'{{"k":"claimed","epoch":{task.epoch + 1},"worker":"{owner.worker}"}}'
    first = {"run": str(uuid.uuid4()), "startedAt": "2027-01-15T08:00:00Z", "agentRevision": "sre-1"}
    head = head_of([line], task.head)
    return contract.claim(task, owner, line=line, head=head, now=NOW, first=first, extras={"summary": "claimed"})


def holding(task: TaskView, owner: Owner) -> Holding:
    assert task.journal is not None
    journal = task.journal
    return Holding(
        ref=task.ref,
        uid=task.uid,
        epoch=task.epoch,
        owner=owner,
        next=journal.next,
        head=journal.head,
        entries=journal.entries,
        sealed=None if journal.sealed is None else (journal.sealed, journal.sealed_next),
    )


def growth(held: Holding, *lines: str) -> Growth:
    return Growth(lines=lines, head=head_of(lines, held.head))


def append(held: Holding, *lines: str) -> Write:
    return contract.append(held, growth(held, *lines), extras={"summary": "goes on"})


def park(held: Holding, *waits: Wait, fired: tuple[str, ...] = ()) -> Write:
    grown = growth(held, '{"k":"asked"}')
    return contract.park(held, grown, waiting_for=waits, fired=fired, now=NOW, extras={"summary": "parked"})


def release(held: Holding) -> Write:
    return contract.release(held, now=NOW, extras={"summary": "released"})


def finish(held: Holding, phase: Phase = Phase.SUCCEEDED) -> Write:
    grown = growth(held, f'{{"k":"finished","phase":"{phase.value}"}}')
    result = {"text": "42"} if phase is Phase.SUCCEEDED else {}
    return contract.finish(held, grown, phase=phase, result=result, now=NOW, extras={"reason": "Done"})


def orphan(task: TaskView, proof: Proof = Proof.LEASE_EXPIRED) -> Write:
    return contract.orphan(task, proof, now=NOW, extras={"summary": "orphaned"})


def fire(task: TaskView, name: str) -> Write:
    write = contract.fire(task, name, extras={"summary": f"woken by {name}"})
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
    held = holding(await ground.claimed(), A)
    return claim(task_view(await ground.do(release(held))), B)


async def _append_write(ground: Ground) -> Write:
    return append(holding(await ground.claimed(), A), '{"k":"one"}', '{"k":"two"}')


async def _sealing_write(ground: Ground) -> Write:
    held = holding(await ground.claimed(), A)
    return contract.append(held, replace(growth(held, '{"k":"one"}'), sealed="segment-1"), extras={})


async def _park_write(ground: Ground) -> Write:
    return park(holding(await ground.claimed(), A), APPROVAL_WAIT, TIMER_WAIT)


async def _release_write(ground: Ground) -> Write:
    return release(holding(await ground.claimed(), A))


async def _finish_write(ground: Ground) -> Write:
    return finish(holding(await ground.claimed(), A))


async def _fail_write(ground: Ground) -> Write:
    return finish(holding(await ground.claimed(), A), Phase.FAILED)


async def _cancel_write(ground: Ground) -> Write:
    return finish(holding(await ground.claimed(desired="Cancel"), A), Phase.CANCELLED)


async def _fire_write(ground: Ground) -> Write:
    return fire(await ground.parked(APPROVAL_WAIT, TIMER_WAIT), "nap")


async def _orphan_write(ground: Ground) -> Write:
    return orphan(await ground.claimed())


async def _remark_write(ground: Ground) -> Write:
    return contract.remark(await ground.task(), extras={"summary": "no worker is live"})


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
"""Every write of contract.py, made on a fresh object that it will land on."""


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
