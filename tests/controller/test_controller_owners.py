"""When an owner counts as dead: what the controller knows of Leases, on its own clock. Tables, no store."""

from __future__ import annotations

import pytest

from aura_operator.controller.owners import GAP_SECONDS, Owners
from aura_operator.core.entries import Proof
from aura_operator.core.instants import BootSeconds
from aura_operator.core.ownership import LEASE_SECONDS, Owner
from aura_operator.store.leases import FREE_SLOTS, POD_UID, lease_ref, new_lease
from aura_operator.store.resources import Manifest
from aura_operator.store.view import task_ref

A1 = Owner(worker="a", incarnation="pod-a.1")
A2 = Owner(worker="a", incarnation="pod-a.2")
TASK = task_ref("n", "one")
UID = "uid-one"
at = BootSeconds


def lease(owner: Owner = A1, *, renewed: float = 1.0, pod_uid: str = "pod-a", slots: int = 3) -> Manifest:
    annotations = {POD_UID: pod_uid, FREE_SLOTS: str(slots)}
    return new_lease(
        lease_ref("aura-system", owner.worker),
        holder=owner.incarnation,
        seconds=int(LEASE_SECONDS),
        now=renewed,
        role="worker",
        annotations=annotations,
    )


def in_contact(owners: Owners, begin: float, end: float) -> None:
    """Contact each second from `begin` up to and with `end`."""
    now = begin
    while now <= end:
        owners.contact(at(now))
        now += 1.0


def running(now: float = 0.0) -> Owners:
    """A's task runs, its Lease has just been seen."""
    owners = Owners(at(now))
    owners.lease(lease(), at(now))
    owners.runs(UID, TASK, A1, at(now))
    return owners


def test_an_owner_whose_lease_is_renewed_lives() -> None:
    owners = running()
    for second in range(0, 100, 5):
        owners.contact(at(float(second)))
        owners.lease(lease(renewed=float(second + 1)), at(float(second)))
        in_contact(owners, float(second), second + 4.0)
        assert owners.proof(A1, at(second + 4.0)) is None


def test_an_owner_without_renewals_is_dead_after_the_leases_duration_and_not_before() -> None:
    owners = running()
    in_contact(owners, 0.0, 14.0)
    owners.lease(lease(), at(14.0))  # the same one, seen again: no sign of life
    assert owners.proof(A1, at(14.9)) is None
    in_contact(owners, 15.0, 15.0)
    assert owners.proof(A1, at(15.0)) is Proof.LEASE_EXPIRED


@pytest.mark.behaviour(8)
def test_a_restarted_container_is_proof_at_once() -> None:
    owners = running()
    assert owners.lease(lease(A2), at(0.5)) == A2
    assert owners.proof(A1, at(0.5)) is Proof.CONTAINER_RESTARTED
    assert owners.proof(A2, at(0.5)) is None


def test_another_pod_of_the_same_name_proves_nothing_by_itself() -> None:
    """A deleted Pod's process may still run somewhere; only time tells."""
    owners = running()
    other = Owner(worker="a", incarnation="pod-x.1")
    owners.lease(lease(other, pod_uid="pod-x"), at(1.0))
    in_contact(owners, 0.0, 14.0)
    assert owners.proof(A1, at(14.0)) is None
    in_contact(owners, 15.0, 16.0)
    assert owners.proof(A1, at(16.0)) is Proof.LEASE_EXPIRED


def test_a_lease_that_is_gone_proves_nothing_by_itself() -> None:
    owners = running()
    owners.lease_gone("a")
    assert owners.proof(A1, at(0.0)) is None
    in_contact(owners, 0.0, 14.0)
    assert owners.proof(A1, at(14.0)) is None
    in_contact(owners, 15.0, 15.0)
    assert owners.proof(A1, at(15.0)) is Proof.LEASE_EXPIRED


def test_an_owner_that_was_never_seen_alive_gets_the_full_time_from_its_first_sight() -> None:
    owners = Owners(at(0.0))
    in_contact(owners, 0.0, 100.0)
    owners.runs(UID, TASK, A1, at(100.0))
    in_contact(owners, 101.0, 114.0)
    assert owners.proof(A1, at(114.0)) is None
    in_contact(owners, 115.0, 115.0)
    assert owners.proof(A1, at(115.0)) is Proof.LEASE_EXPIRED


@pytest.mark.behaviour(9)
def test_after_a_gap_in_contact_all_timers_start_anew() -> None:
    """An API server that is down stops the renewals too: its end must not look like everybody's death."""
    owners = running()
    in_contact(owners, 0.0, 5.0)
    assert owners.proof(A1, at(60.0)) is None, "no contact, no proof"
    in_contact(owners, 60.0, 74.0)
    assert owners.proof(A1, at(74.0)) is None
    in_contact(owners, 75.0, 75.0)
    assert owners.proof(A1, at(75.0)) is Proof.LEASE_EXPIRED


def test_a_short_hole_is_no_gap_and_a_longer_one_is() -> None:
    for hole, proof in ((GAP_SECONDS, Proof.LEASE_EXPIRED), (GAP_SECONDS + 0.1, None)):
        owners = running()
        in_contact(owners, 0.0, 5.0)
        in_contact(owners, 5.0 + hole, 16.0)
        assert owners.proof(A1, at(16.0)) is proof, hole


def test_a_controller_that_just_started_knows_nobodys_death() -> None:
    owners = running(now=1000.0)
    assert owners.proof(A1, at(1000.0)) is None


def test_tasks_are_found_by_their_owner_and_forgotten_with_their_end() -> None:
    owners = running()
    other = task_ref("n", "two")
    owners.runs("uid-two", other, A1, at(1.0))
    assert owners.tasks(A1) == [TASK, other] and owners.all() == [A1]
    owners.runs("uid-two", other, A2, at(2.0))
    assert (owners.tasks(A1), owners.tasks(A2)) == ([TASK], [other])
    owners.ended("uid-two", but=A2)
    assert owners.tasks(A2) == [other], "still running in those hands"
    owners.ended(UID)
    owners.ended(UID)
    owners.ended("never seen")
    assert owners.all() == [A2] and owners.tasks(A1) == []


def test_a_task_that_ended_and_runs_again_is_no_old_acquaintance() -> None:
    """The signs of an owner that has nothing to do any more aren't held against it later."""
    owners = Owners(at(0.0))
    owners.runs(UID, TASK, A1, at(0.0))
    owners.ended(UID)
    in_contact(owners, 0.0, 100.0)
    owners.runs(UID, TASK, A1, at(100.0))
    assert owners.proof(A1, at(100.0)) is None


def slots(owners: Owners, now: float) -> tuple[int, int]:
    live = owners.live(BootSeconds(now))
    return len(live), sum(lease.free_slots for lease in live)


def test_how_many_workers_live_and_what_they_have_free() -> None:
    owners = Owners(at(0.0))
    assert slots(owners, 0.0) == (0, 0)
    owners.lease(lease(slots=3), at(0.0))
    owners.lease(lease(Owner(worker="b", incarnation="pod-b.1"), pod_uid="pod-b", slots=5), at(10.0))
    assert slots(owners, 14.0) == (2, 8)
    assert slots(owners, 16.0) == (1, 5)
    owners.lease_gone("b")
    assert slots(owners, 16.0) == (0, 0)
