"""What a list, an event and a renewal do to each other when they overlap; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from aura_operator.controller.indexes.known import Known
from aura_operator.controller.leader import Leadership
from aura_operator.controller.work import KEPT, Work
from aura_operator.core.instants import BootSeconds
from aura_operator.errors import OutcomeUnknownError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.leases import lease_ref
from aura_operator.store.resources import Manifest
from aura_operator.testing.clock import FakeClock, virtual_time
from aura_operator.testing.faulty import FaultyStore, Refuse, Slow
from aura_operator.testing.memory import MemoryStore

REF = approval_ref("n", "a")


def shown(version: str, uid: str = "u") -> Manifest:
    return {"metadata": {"namespace": "n", "name": "a", "uid": uid, "resourceVersion": version}}


@virtual_time
async def test_a_leader_whose_lease_lapsed_during_the_renewal_that_saved_it_looks_at_everything_anew() -> None:
    clock = FakeClock()
    store = FaultyStore(MemoryStore(clock), clock)
    leadership = Leadership(store, clock, lease_ref("h", "aura-controller"), holder="me", pod_uid="p")
    keeping = asyncio.ensure_future(leadership.keep())
    await leadership.gained.wait(60)
    began = clock.boot()
    store.add(Refuse(OutcomeUnknownError("no")), lambda call: clock.boot() - began < 9.0)
    store.add(Slow(seconds=2.0), lambda call: call.method == "patch" and 9.0 <= clock.boot() - began < 12.0)
    lapsed = False
    for _ in range(300):
        await clock.advance(0.05)
        lapsed = lapsed or not leadership.leading
    assert lapsed and leadership.leading
    async with asyncio.timeout(1):
        await leadership.gained.wait(None)
    keeping.cancel()


def test_a_list_that_is_older_than_an_event_says_nothing_of_the_object() -> None:
    known = Known()
    known.told(REF, shown("7"), BootSeconds(10.0))
    assert known.outdated(REF, shown("5"), 9.0), "the event is newer"
    assert not known.outdated(REF, shown("7"), 9.0)
    assert not known.outdated(REF, shown("8"), 11.0), "the list began after it"
    assert not known.outdated(REF, shown("1", uid="other"), 9.0), "another object of its name"


def test_what_ended_while_a_list_was_under_way_does_not_come_back() -> None:
    known = Known()
    known.told(REF, shown("7"), BootSeconds(10.0))
    assert known.gone(REF, "u", BootSeconds(12.0))
    assert known.outdated(REF, shown("7"), 11.0)
    assert not known.outdated(REF, shown("7", uid="next"), 11.0)
    assert known.untold() is None


@pytest.mark.parametrize("rounds", [1, 2])
@virtual_time
async def test_beyond_a_bound_only_names_wait_however_often_they_are_put(rounds: int) -> None:
    async def look(*_: object) -> None:
        await asyncio.Event().wait()

    work = Work(look)
    for _ in range(rounds):
        for number in range(2 * KEPT):
            work.later(approval_ref("n", f"a{number}"), f"view {number}")
    lane = work._lane(approval_ref("n", "a0"))
    assert sum(view is not None for view in lane.rest.values()) == KEPT
