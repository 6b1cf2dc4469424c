"""What every Store must make of the operator's writes: checks that run against any of them. Owns the checks; where
they run is the tests' part (memory, memory that loses answers, a real API server).

They assert the state of the world, not the requests. A check makes its own objects in `ground.namespace`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from aura_operator.core.absorb import Decision
from aura_operator.core.entries import Proof, Verdict
from aura_operator.core.journal import SCHEMA, head_of
from aura_operator.core.lifecycle import Desired, Phase, WaitKind
from aura_operator.core.ownership import Owner
from aura_operator.errors import (
    ConflictError,
    ContentRejectedError,
    NotFoundError,
    OutcomeUnknownError,
    TestFailedError,
)
from aura_operator.store import contract
from aura_operator.store.approvals import approval_ref, approval_view
from aura_operator.store.client import Op, Store, put
from aura_operator.store.clock import Clock
from aura_operator.store.commit import commit, read_through
from aura_operator.store.contract import Growth, Holding, Write
from aura_operator.store.resources import APPROVALS, TASKS, Manifest, Ref, new
from aura_operator.store.settling import count_votes, settle_approval
from aura_operator.store.view import TaskView, Wait, task_view

RACES = 50
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


# What holds for each of them


async def lands_once(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """`landed` is false before and true after; sending it again, byte for byte, changes nothing."""
    write = await make(ground)
    assert not write.landed(await ground.read(write.ref)), f"{write.name} says that it landed before it was sent"
    after = await ground.do(write)
    assert write.landed(after)
    again = await ground.do(write)
    assert _content(again) == _content(after)
    # Refused, or nobody knows: what counts is what is there.
    with suppress(TestFailedError, OutcomeUnknownError):
        await ground.store.patch(write.ref, write.ops, subresource="status")
    assert _content(await ground.read(write.ref)) == _content(after)


async def is_refused_for_another_object(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """An object of the same name with another uid is left alone."""
    write = await make(ground)
    before = await ground.read(write.ref)
    await ground.user_store.delete(write.ref, uid=before["metadata"]["uid"])
    resource, metadata = write.ref.resource, before["metadata"]
    twin = new(resource, metadata["namespace"], metadata["name"], spec=before["spec"])
    fresh = await ground.user_store.create(resource, twin)
    assert await _refused(ground, write)
    assert _content(await ground.read(write.ref)) == _content(fresh)


async def is_refused_when_its_task_moved_on(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """A write made from an old sight of the object changes nothing once somebody else was there."""
    write = await make(ground)
    await _moved_on(ground, write)
    before = await ground.read(write.ref)
    await _refused(ground, write)
    assert _content(await ground.read(write.ref)) == _content(before)


async def a_users_edit_makes_none_fail(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """A patch of the spec between read and write is no conflict."""
    write = await make(ground)
    field, value = ("priority", 7) if write.ref.resource == TASKS else ("decision", None)
    if value is not None:
        await ground.user_store.patch(write.ref, [put(f"/spec/{field}", value)])
    else:
        await ground.user_store.patch(write.ref, [put("/metadata/labels", {"seen": "yes"})])
    assert write.landed(await ground.do(write))
    if value is not None:
        assert (await ground.read(write.ref))["spec"][field] == value


EACH_WRITE: tuple[Callable[[Ground, Callable[[Ground], Awaitable[Write]]], Coroutine[Any, Any, None]], ...] = (
    lands_once,
    is_refused_for_another_object,
    is_refused_when_its_task_moved_on,
    a_users_edit_makes_none_fail,
)


async def _breaks_a_rule(ground: Ground, ref: Ref, op: Op) -> bool:
    try:
        await ground.user_store.patch(ref, [op], subresource="status")
    except ContentRejectedError:
        return True
    return False


async def _refused(ground: Ground, write: Write) -> bool:
    try:
        await ground.do(write)
    except (ConflictError, NotFoundError):
        return True
    return False


async def _moved_on(ground: Ground, write: Write) -> None:
    """Somebody else does the next thing: claims a pending task, takes a running one over, settles an approval."""
    if write.ref.resource == APPROVALS:
        await ground.do(settle(await ground.read(write.ref), Verdict.WITHDRAWN, "the task ended"))
        return
    task = await ground.view(write.ref)
    if task.phase is Phase.RUNNING:
        task = task_view(await ground.do(orphan(task)))
    elif task.phase is Phase.WAITING:
        task = task_view(await ground.do(fire(task, task.waiting_for[0].name)))
    await ground.do(claim(task, Owner(worker="c", incarnation="pod-c.1")))


def _content(manifest: Manifest) -> Manifest:
    """The object without what every request may touch."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key in ("uid", "name", "generation")}
    return {"metadata": metadata, "spec": manifest["spec"], "status": manifest["status"]}


# What holds for single ones


async def one_of_racing_claimers_wins(ground: Ground) -> None:
    for _ in range(RACES):
        task = await ground.task()
        owners = [Owner(worker=f"w{number}", incarnation=f"pod.{number}") for number in range(4)]
        results = await asyncio.gather(*(ground.do(claim(task, owner)) for owner in owners), return_exceptions=True)
        won = [owner for owner, result in zip(owners, results, strict=True) if not isinstance(result, BaseException)]
        lost = [result for result in results if isinstance(result, BaseException)]
        assert len(won) == 1, results
        assert all(isinstance(result, ConflictError) for result in lost), lost
        after = await ground.view(task.ref)
        assert (after.owner, after.epoch) == (won[0], 1)
        assert after.journal is not None and after.journal.next == len(after.journal.entries) == 1


async def a_claim_waits_for_what_the_user_wants(ground: Ground) -> None:
    """Cancelled between read and claim: not claimed as if it were to run."""
    task = await ground.task()
    await ground.user_store.patch(task.ref, [put("/spec/desired", "Cancel")])
    assert await _refused(ground, claim(task, A))
    seen = await ground.view(task.ref)
    assert (seen.phase, seen.desired) == (Phase.PENDING, Desired.CANCEL)
    assert task_view(await ground.do(claim(seen, A))).owned_by(A)


async def a_task_that_is_being_deleted_is_not_claimed(ground: Ground) -> None:
    task = await ground.task()
    await ground.user_store.patch(task.ref, [put("/metadata/finalizers", ["test.example/hold"])])
    await ground.user_store.delete(task.ref, uid=task.uid)
    assert await _refused(ground, claim(task, A))
    assert (await ground.view(task.ref)).deleting
    await ground.user_store.patch(task.ref, [put("/metadata/finalizers", [])])


async def a_stale_owner_writes_nothing(ground: Ground) -> None:
    """Whatever the old owner tries after a take-over, the new one's task stays as it is, and the old one knows."""
    for write_of in (lambda held: append(held, '{"k":"late"}'), lambda held: park(held, TIMER_WAIT), release, finish):
        task = await ground.claimed(A)
        stale = holding(task, A)
        taken = task_view(await ground.do(claim(task_view(await ground.do(orphan(task))), B)))
        before = await ground.read(task.ref)
        write = write_of(stale)
        refused = await _refused(ground, write)
        assert refused or write.name in ("park", "release"), f"a stale owner takes its {write.name} for done"
        assert _content(await ground.read(task.ref)) == _content(before)
        assert task_view(await ground.do(append(holding(taken, B), '{"k":"on"}'))).owned_by(B)


async def a_stale_finish_is_no_success_after_another_owner_finished(ground: Ground) -> None:
    task = await ground.claimed(A)
    taken = task_view(await ground.do(claim(task_view(await ground.do(orphan(task))), B)))
    await ground.do(finish(holding(taken, B), Phase.FAILED))
    assert await _refused(ground, finish(holding(task, A)))
    assert (await ground.view(task.ref)).phase is Phase.FAILED


async def only_what_is_awaited_is_fired(ground: Ground) -> None:
    parked = await ground.parked(APPROVAL_WAIT)
    assert contract.fire(parked, "something else", extras={}) is None
    woken = task_view(await ground.do(fire(parked, "yes")))
    assert (woken.phase, woken.fired) == (Phase.PENDING, ("yes",))
    assert contract.fire(woken, "yes", extras={}) is None
    claimed = task_view(await ground.do(claim(woken, B)))
    assert claimed.waiting_for == ()
    # Seen while it waited, sent after it was claimed: no longer awaited, so nothing to do and nothing done.
    await ground.do(fire(parked, "yes"))
    assert (await ground.view(parked.ref)).owned_by(B)


async def two_wakes_at_once_wake_once(ground: Ground) -> None:
    parked = await ground.parked(APPROVAL_WAIT, TIMER_WAIT)
    results = await asyncio.gather(
        ground.do(fire(parked, "yes")), ground.do(fire(parked, "nap")), return_exceptions=True
    )
    assert sum(isinstance(result, ConflictError) for result in results) == 1, results
    woken = await ground.view(parked.ref)
    assert woken.phase is Phase.PENDING and len(woken.fired) == 1
    other = "nap" if woken.fired == ("yes",) else "yes"
    both = task_view(await ground.do(fire(woken, other)))
    assert set(both.fired) == {"yes", "nap"} and both.phase is Phase.PENDING


async def parking_fails_if_something_fired_meanwhile(ground: Ground) -> None:
    """A wake-up is never parked over: the owner is told, keeps the task, and parks with what it has seen."""
    held = holding(await ground.claimed(), A)
    await ground.user_store.patch(held.ref, [put("/status/fired", ["yes"])], subresource="status")
    assert await _refused(ground, park(held, APPROVAL_WAIT))
    assert (await ground.view(held.ref)).owned_by(A)
    parked = task_view(await ground.do(park(held, APPROVAL_WAIT, fired=("yes",))))
    assert (parked.phase, parked.fired) == (Phase.WAITING, ())


async def orphan_and_finish_race(ground: Ground) -> None:
    """One of the two stands, and both sides know which."""
    for _ in range(10):
        task = await ground.claimed()
        orphaned, finished = await asyncio.gather(
            ground.do(orphan(task)), ground.do(finish(holding(task, A))), return_exceptions=True
        )
        after = await ground.view(task.ref)
        assert after.owner is None
        if after.phase is Phase.SUCCEEDED:
            # The controller may read it as done: it is no longer in the dead owner's hands.
            assert not isinstance(finished, BaseException), finished
            assert after.recoveries == 0
        else:
            assert after.phase is Phase.PENDING and isinstance(finished, ConflictError), finished
            assert not isinstance(orphaned, BaseException) and after.recoveries == 1
            assert after.last_end is not None and after.last_end.proof is Proof.LEASE_EXPIRED


async def a_hand_over_is_no_recovery(ground: Ground) -> None:
    task = await ground.claimed()
    released = task_view(await ground.do(release(holding(task, A))))
    assert (released.phase, released.recoveries) == (Phase.PENDING, 0)
    assert released.last_end is not None and released.last_end.proof is Proof.RELEASED


async def the_end_absorbs(ground: Ground) -> None:
    task = await ground.claimed()
    held = holding(task, A)
    await ground.do(finish(held))
    before = await ground.read(task.ref)
    for write in (append(held, '{"k":"late"}'), park(held, TIMER_WAIT), orphan(task), claim(task, B), release(held)):
        await _refused(ground, write)
        assert _content(await ground.read(task.ref)) == _content(before), write.name
    assert await _refused(ground, finish(held, Phase.FAILED))
    assert (await ground.view(task.ref)).phase is Phase.SUCCEEDED


async def a_settled_approval_stays_settled(ground: Ground) -> None:
    ref = await ground.approval(await ground.task())
    pending = await ground.read(ref)
    first = await ground.do(settle(pending, Verdict.DENIED, "no"))
    assert await _refused(ground, settle(pending, Verdict.EXPIRED, "too late"))
    assert (await ground.read(ref))["status"] == first["status"]
    assert await _breaks_a_rule(ground, ref, put("/status/phase", "Withdrawn"))


async def nobody_is_owner_without_running(ground: Ground) -> None:
    """The rules on status hold whoever writes: epoch, owner and end."""
    task = await ground.claimed()
    for path, value in (("/status/epoch", 0), ("/status/phase", "Pending")):
        assert await _breaks_a_rule(ground, task.ref, put(path, value)), path
    assert (await read_through(ground.user_store, task.ref, ground.clock))["status"]["epoch"] == 1


async def a_new_task_is_claimable_whatever_its_status_said(ground: Ground) -> None:
    manifest = new(TASKS, ground.namespace, f"t-{uuid.uuid4().hex[:10]}")
    manifest |= {"spec": {"agentRef": {"name": "sre"}, "input": "go"}, "status": {"phase": "Succeeded", "epoch": 9}}
    created = await ground.user_store.create(TASKS, manifest)
    assert created["status"] == {"phase": "Pending", "epoch": 0, "recoveries": 0}
    assert (created["spec"]["desired"], created["metadata"]["generation"]) == ("Run", 1)
    patched = await ground.user_store.patch(
        task_view(created).ref, [put("/status/phase", "Waiting"), put("/spec/priority", 3)]
    )
    assert (patched["status"]["phase"], patched["spec"]["priority"]) == ("Pending", 3)
    patched = await ground.user_store.patch(
        task_view(created).ref, [put("/status/summary", "hm"), put("/spec/priority", 4)], subresource="status"
    )
    assert (patched["status"]["summary"], patched["spec"]["priority"]) == ("hm", 3)


async def a_journal_of_a_newer_schema_is_kept(ground: Ground) -> None:
    """Nothing in the store reads the number; a claim takes it along, which is why claims.py looks at it."""
    task = await ground.claimed()
    newer = put("/status/checkpoint/schema", SCHEMA + 1)
    await ground.user_store.patch(task.ref, [newer], subresource="status")
    seen = await ground.view(task.ref)
    assert seen.journal is not None and seen.journal.schema == SCHEMA + 1


SINGLE: tuple[Callable[[Ground], Coroutine[Any, Any, None]], ...] = (
    one_of_racing_claimers_wins,
    a_claim_waits_for_what_the_user_wants,
    a_task_that_is_being_deleted_is_not_claimed,
    a_stale_owner_writes_nothing,
    a_stale_finish_is_no_success_after_another_owner_finished,
    only_what_is_awaited_is_fired,
    two_wakes_at_once_wake_once,
    parking_fails_if_something_fired_meanwhile,
    orphan_and_finish_race,
    a_hand_over_is_no_recovery,
    the_end_absorbs,
    a_settled_approval_stays_settled,
    nobody_is_owner_without_running,
    a_new_task_is_claimable_whatever_its_status_said,
    a_journal_of_a_newer_schema_is_kept,
)
