"""What holds for single writes of the operator, and between two of them, on every Store. Owns the checks; the ground is
store_checks_writes.py's."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from aura_operator.core.codec import SCHEMA
from aura_operator.core.entries import Proof, Verdict
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.ownership import Owner
from aura_operator.errors import (
    ConflictError,
    ContentRejectedError,
)
from aura_operator.store import task_repairs
from aura_operator.store.commit import get_retrying
from aura_operator.store.interface import Op, add
from aura_operator.store.resources import TASKS, Ref, new
from aura_operator.store.view import task_view
from aura_operator.testing.store_checks_writes import (
    APPROVAL_WAIT,
    TIMER_WAIT,
    A,
    B,
    Ground,
    append,
    claim,
    content,
    finish,
    fire,
    orphan,
    owned,
    park,
    refused,
    release,
    settle,
)

RACES = 50


async def _breaks_a_rule(ground: Ground, ref: Ref, op: Op) -> bool:
    try:
        await ground.user_store.patch(ref, [op], subresource="status")
    except ContentRejectedError:
        return True
    return False


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
    await ground.user_store.patch(task.ref, [add("/spec/desired", "Cancel")])
    assert await refused(ground, claim(task, A))
    seen = await ground.view(task.ref)
    assert (seen.phase, seen.desired) == (Phase.PENDING, Desired.CANCEL)
    assert task_view(await ground.do(claim(seen, A))).owned_by(A)


async def a_task_that_is_being_deleted_is_not_claimed(ground: Ground) -> None:
    task = await ground.task()
    await ground.user_store.patch(task.ref, [add("/metadata/finalizers", ["test.example/hold"])])
    await ground.user_store.delete(task.ref, uid=task.uid)
    assert await refused(ground, claim(task, A))
    assert (await ground.view(task.ref)).deleting
    await ground.user_store.patch(task.ref, [add("/metadata/finalizers", [])])


async def a_stale_owner_writes_nothing(ground: Ground) -> None:
    """Whatever the old owner tries after a take-over, the new one's task stays as it is, and the old one knows."""
    for write_of in (lambda held: append(held, '{"k":"late"}'), lambda held: park(held, TIMER_WAIT), release, finish):
        task = await ground.claimed(A)
        stale = owned(task, A)
        taken = task_view(await ground.do(claim(task_view(await ground.do(orphan(task))), B)))
        before = await ground.read(task.ref)
        write = write_of(stale)
        was_refused = await refused(ground, write)
        assert was_refused or write.name in ("park", "release"), f"a stale owner takes its {write.name} for done"
        assert content(await ground.read(task.ref)) == content(before)
        assert task_view(await ground.do(append(owned(taken, B), '{"k":"on"}'))).owned_by(B)


async def a_stale_finish_is_no_success_after_another_owner_finished(ground: Ground) -> None:
    task = await ground.claimed(A)
    taken = task_view(await ground.do(claim(task_view(await ground.do(orphan(task))), B)))
    await ground.do(finish(owned(taken, B), Phase.FAILED))
    assert await refused(ground, finish(owned(task, A)))
    assert (await ground.view(task.ref)).phase is Phase.FAILED


async def only_what_is_awaited_is_fired(ground: Ground) -> None:
    parked = await ground.parked(APPROVAL_WAIT)
    assert task_repairs.fire(parked, "something else", fields={}) is None
    woken = task_view(await ground.do(fire(parked, "yes")))
    assert (woken.phase, woken.fired) == (Phase.PENDING, ("yes",))
    assert task_repairs.fire(woken, "yes", fields={}) is None
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
    held = owned(await ground.claimed(), A)
    await ground.user_store.patch(held.ref, [add("/status/fired", ["yes"])], subresource="status")
    assert await refused(ground, park(held, APPROVAL_WAIT))
    assert (await ground.view(held.ref)).owned_by(A)
    parked = task_view(await ground.do(park(held, APPROVAL_WAIT, fired=("yes",))))
    assert (parked.phase, parked.fired) == (Phase.WAITING, ())


async def orphan_and_finish_race(ground: Ground) -> None:
    """One of the two stands, and both sides know which."""
    for _ in range(10):
        task = await ground.claimed()
        orphaned, finished = await asyncio.gather(
            ground.do(orphan(task)), ground.do(finish(owned(task, A))), return_exceptions=True
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
    released = task_view(await ground.do(release(owned(task, A))))
    assert (released.phase, released.recoveries) == (Phase.PENDING, 0)
    assert released.last_end is not None and released.last_end.proof is Proof.RELEASED


async def the_end_absorbs(ground: Ground) -> None:
    task = await ground.claimed()
    held = owned(task, A)
    await ground.do(finish(held))
    before = await ground.read(task.ref)
    for write in (append(held, '{"k":"late"}'), park(held, TIMER_WAIT), orphan(task), claim(task, B), release(held)):
        await refused(ground, write)
        assert content(await ground.read(task.ref)) == content(before), write.name
    assert await refused(ground, finish(held, Phase.FAILED))
    assert (await ground.view(task.ref)).phase is Phase.SUCCEEDED


async def a_settled_approval_stays_settled(ground: Ground) -> None:
    ref = await ground.approval(await ground.task())
    pending = await ground.read(ref)
    first = await ground.do(settle(pending, Verdict.DENIED, "no"))
    assert await refused(ground, settle(pending, Verdict.EXPIRED, "too late"))
    assert (await ground.read(ref))["status"] == first["status"]
    assert await _breaks_a_rule(ground, ref, add("/status/phase", "Withdrawn"))


async def nobody_is_owner_without_running(ground: Ground) -> None:
    """The rules on status hold whoever writes: epoch, owner and end."""
    task = await ground.claimed()
    for path, value in (("/status/epoch", 0), ("/status/phase", "Pending")):
        assert await _breaks_a_rule(ground, task.ref, add(path, value)), path
    assert (await get_retrying(ground.user_store, task.ref, ground.clock))["status"]["epoch"] == 1


async def a_new_task_is_claimable_whatever_its_status_said(ground: Ground) -> None:
    manifest = new(TASKS, ground.namespace, f"t-{uuid.uuid4().hex[:10]}")
    manifest |= {"spec": {"agentRef": {"name": "sre"}, "input": "go"}, "status": {"phase": "Succeeded", "epoch": 9}}
    created = await ground.user_store.create(TASKS, manifest)
    assert created["status"] == {"phase": "Pending", "epoch": 0, "recoveries": 0}
    assert (created["spec"]["desired"], created["metadata"]["generation"]) == ("Run", 1)
    patched = await ground.user_store.patch(
        task_view(created).ref, [add("/status/phase", "Waiting"), add("/spec/priority", 3)]
    )
    assert (patched["status"]["phase"], patched["spec"]["priority"]) == ("Pending", 3)
    patched = await ground.user_store.patch(
        task_view(created).ref, [add("/status/summary", "hm"), add("/spec/priority", 4)], subresource="status"
    )
    assert (patched["status"]["summary"], patched["spec"]["priority"]) == ("hm", 3)


async def a_journal_of_a_newer_schema_is_kept(ground: Ground) -> None:
    """Nothing in the store reads the number; a claim takes it along, which is why candidates.py looks at it."""
    task = await ground.claimed()
    newer = add("/status/journal/schema", SCHEMA + 1)
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
