"""A worker's Lease: its deadline, its lapses, who may take it over, and when it fences; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from aura_operator.core import codec
from aura_operator.core.instants import from_text
from aura_operator.core.ownership import DEADLINE_SECONDS, LEASE_SECONDS, RENEW_SECONDS
from aura_operator.errors import NotFoundError, OutcomeUnknownError, UnavailableError
from aura_operator.store.interface import add
from aura_operator.store.lease_holder import GIVE_UP_SECONDS
from aura_operator.store.leases import FREE_SLOTS, lease_view, new_lease
from aura_operator.store.resources import LEASES
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import LoseAnswer, Refuse, Slow, calls
from tests.worker.leasing import REF, RENEWALS, Desk, fenced, kept


@virtual_time
async def test_a_lease_is_created_with_its_pods_uid_and_free_slots() -> None:
    desk = Desk()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "worker-0", "uid": "pod-1"}
    lease = desk.lease(owner=owner)
    assert not lease.may_start(), "not before there is one"
    await lease.acquire()
    assert lease.may_start()
    manifest = await desk.memory.get(REF)
    view = lease_view(manifest)
    assert (view.incarnation, view.pod_uid, view.free_slots) == ("pod-1.a", "pod-1", 8)
    assert view.duration_seconds == LEASE_SECONDS
    assert manifest["metadata"]["ownerReferences"] == [owner]


@virtual_time
async def test_it_is_renewed_on_time_and_says_how_many_slots_are_free() -> None:
    desk = Desk()
    lease = desk.lease()
    async with kept(lease):
        for minute in range(1, 4):
            desk.slots = minute
            await desk.clock.advance(60)
            assert lease.may_start() and lease.lapses == 0
            manifest = await desk.memory.get(REF)
            age = desk.clock.now() - from_text(manifest["spec"]["renewTime"])
            assert age <= RENEW_SECONDS
            assert manifest["metadata"]["annotations"][FREE_SLOTS] == str(minute)
            assert lease_view(manifest).journal_schema == codec.SCHEMA


@pytest.mark.behaviour(7)
@virtual_time
async def test_the_deadline_counts_from_when_the_renewal_was_sent() -> None:
    """The server may have carried it out just then, and others count from that, not from when the answer came."""
    desk = Desk()
    lease = desk.lease()
    desk.store.add(Slow(seconds=2.5), RENEWALS)
    async with kept(lease):
        await desk.clock.advance(RENEW_SECONDS + 2.5)  # sent at 5, answered at 7.5
        desk.store.add(Refuse(UnavailableError("down")), lambda call: True)
        desk.store.clear()
        desk.store.add(Refuse(UnavailableError("down")), RENEWALS)
        await desk.clock.advance(DEADLINE_SECONDS - 2.5 - 0.01)
        assert lease.may_start()
        await desk.clock.advance(0.02)
        assert not lease.may_start()


@pytest.mark.behaviour(9)
@virtual_time
async def test_an_outage_ends_the_permission_to_start_and_the_lapse_is_counted() -> None:
    desk = Desk()
    lease = desk.lease()
    async with kept(lease):
        desk.store.add(Refuse(UnavailableError("down")), RENEWALS)
        await desk.clock.advance(DEADLINE_SECONDS - 0.1)
        assert lease.may_start(), "nobody else can have a right yet"
        await desk.clock.advance(0.2)
        assert not lease.may_start()
        waiting = asyncio.ensure_future(lease.until_renewed())
        await desk.clock.advance(30)
        assert not waiting.done() and lease.lapses == 0
        desk.store.clear()
        await waiting
        assert lease.may_start() and lease.lapses == 1


@virtual_time
async def test_a_short_outage_is_no_lapse() -> None:
    desk = Desk()
    lease = desk.lease()
    async with kept(lease):
        desk.store.add(Refuse(UnavailableError("down")), RENEWALS)
        await desk.clock.advance(DEADLINE_SECONDS - 1)
        desk.store.clear()
        await desk.clock.advance(2)
        assert lease.may_start() and lease.lapses == 0


@virtual_time
async def test_a_server_that_never_answers_is_given_up_and_asked_again() -> None:
    desk = Desk()
    lease = desk.lease()
    desk.store.add(Slow(seconds=3600), RENEWALS, nth=1)
    async with kept(lease):
        await desk.clock.advance(DEADLINE_SECONDS)
        assert lease.may_start(), "the second renewal came in time"


@pytest.mark.behaviour(7)
@virtual_time
async def test_a_process_that_stood_still_may_start_nothing_when_it_goes_on() -> None:
    """SIGSTOP past the deadline: the clock that counts goes on while the process is stopped."""
    desk = Desk()
    lease = desk.lease()
    async with kept(lease):
        await desk.clock.advance(6)
        desk.clock.suspend(20)
        assert not lease.may_start()
        await desk.clock.advance(1)
        assert lease.may_start() and lease.lapses == 1, "renewed, since nobody took it, but each task is read again"


@pytest.mark.behaviour(11)
@virtual_time
async def test_a_lost_answer_to_a_renewal_is_not_taken_for_being_fenced() -> None:
    desk = Desk()
    lease = desk.lease()
    async with kept(lease) as keeping:
        desk.store.add(LoseAnswer(), RENEWALS)
        await desk.clock.advance(DEADLINE_SECONDS + 1)
        assert not keeping.done()
        assert not lease.may_start(), "what isn't known to have landed counts for nothing"


@pytest.mark.behaviour(7)
@virtual_time
async def test_a_lease_that_is_gone_fences_and_is_never_made_anew() -> None:
    desk = Desk()
    lease = desk.lease()
    await lease.acquire()
    await desk.delete()
    await fenced(lease)
    with pytest.raises(NotFoundError):
        await desk.memory.get(REF)


@pytest.mark.behaviour(7)
@virtual_time
async def test_a_lease_that_is_anothers_fences_and_is_left_alone() -> None:
    desk = Desk()
    lease = desk.lease()
    await lease.acquire()
    await desk.memory.patch(REF, [add("/spec/holderIdentity", "pod-1.b")])
    await fenced(lease)
    assert await desk.holder() == "pod-1.b"


@pytest.mark.behaviour(8)
@virtual_time
async def test_the_next_life_of_the_same_container_takes_over_at_once_and_fences_the_last() -> None:
    desk = Desk()
    old, new = desk.lease("pod-1.a"), desk.lease("pod-1.b")
    await old.acquire()
    began = desk.clock.boot()
    await new.acquire()
    assert desk.clock.boot() == began
    assert await desk.holder() == "pod-1.b"
    await fenced(old)
    assert new.may_start()


@virtual_time
async def test_another_pods_lease_is_waited_for_however_old_it_is() -> None:
    desk = Desk()
    theirs, ours = desk.lease("pod-1.a"), desk.lease("pod-2.a", pod_uid="pod-2")
    await theirs.acquire()
    acquiring = asyncio.ensure_future(ours.acquire())
    await desk.clock.advance(600)
    assert not acquiring.done() and not ours.may_start()
    assert await desk.holder() == "pod-1.a"
    await desk.delete()
    await acquiring
    assert await desk.holder() == "pod-2.a" and ours.may_start()


@virtual_time
async def test_of_two_lives_that_take_over_at_once_one_wins() -> None:
    desk = Desk()
    old = desk.lease("pod-1.a")
    await old.acquire()
    lives = [desk.lease(f"pod-1.{name}") for name in "bcd"]
    acquiring = [asyncio.ensure_future(life.acquire()) for life in lives]
    await desk.clock.advance(0.001)
    assert sum(task.done() for task in acquiring) == 1
    for task in acquiring:
        task.cancel()
    await asyncio.gather(*acquiring, return_exceptions=True)


@pytest.mark.behaviour(11)
@pytest.mark.parametrize("fault", [LoseAnswer(), Refuse(OutcomeUnknownError("cut")), Refuse(UnavailableError("busy"))])
def test_acquiring_survives_lost_answers(fault: LoseAnswer | Refuse) -> None:
    @virtual_time
    async def run() -> None:
        for incarnation in ("pod-1.a", "pod-1.b"):  # by creating it, and by taking it over
            desk.store.clear()
            desk.store.add(fault, lambda call: call.writes, nth=1)
            lease = desk.lease(incarnation)
            await lease.acquire()
            assert lease.may_start()
            assert await desk.holder() == incarnation

    desk = Desk()
    run()


@virtual_time
async def test_a_lease_is_given_up_only_if_it_is_ones_own() -> None:
    desk = Desk()
    old, new = desk.lease("pod-1.a"), desk.lease("pod-1.b")
    await old.acquire()
    await new.acquire()
    await old.give_up()
    assert await desk.holder() == "pod-1.b" and not old.may_start()
    await new.give_up()
    with pytest.raises(NotFoundError):
        await desk.memory.get(REF)


@virtual_time
async def test_a_lease_that_somebody_wrote_by_hand_crashes_nothing() -> None:
    desk = Desk()
    manifest = new_lease(REF, holder="x", seconds=15, now=1.0, role="worker", annotations={FREE_SLOTS: "many"})
    await desk.memory.create(LEASES, manifest)
    view = lease_view(await desk.memory.get(REF))
    assert (view.pod_uid, view.free_slots) == ("", 0)


@pytest.mark.behaviour(7)
@virtual_time
async def test_a_lease_won_long_before_its_answer_was_read_is_renewed_before_it_counts() -> None:
    desk = Desk()
    desk.store.add(LoseAnswer(), calls("create", LEASES), nth=1)
    for number in range(2, 26):  # 12 s of half-second attempts
        desk.store.add(Refuse(UnavailableError("cut off")), calls("get", LEASES), nth=number)
    lease = desk.lease()
    acquiring = asyncio.ensure_future(lease.acquire())
    while not acquiring.done():
        await desk.clock.advance(0.1)
    spec = (await desk.memory.get(REF))["spec"]
    assert lease.may_start()
    # Others count from the last renewal, so the permission must too.
    assert from_text(spec["renewTime"]) - from_text(spec["acquireTime"]) > DEADLINE_SECONDS


@virtual_time
async def test_the_end_of_a_process_does_not_wait_for_a_server_that_is_silent() -> None:
    desk = Desk()
    lease = desk.lease()
    await lease.acquire()
    desk.store.add(Slow(seconds=1e6), calls("get", LEASES))
    began = desk.clock.boot()
    await lease.give_up()
    assert desk.clock.boot() - began <= GIVE_UP_SECONDS + 0.1 and not lease.may_start()
