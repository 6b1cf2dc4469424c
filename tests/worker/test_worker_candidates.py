"""Who takes which Pending task when: ranks, slots, turns, quarantine. Tables, no store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aura_operator.core.codec import SCHEMA
from aura_operator.core.entries import Proof
from aura_operator.core.instants import BootSeconds, UnixSeconds
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.ownership import QUARANTINE_RECOVERIES, RANK_DELAY_SECONDS, Owner, rank
from aura_operator.store.leases import FREE_SLOTS, POD_UID, lease_ref, new_lease
from aura_operator.store.resources import Manifest
from aura_operator.store.task_fields import JournalView, LastEnd
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker.candidates import PATIENCE_SECONDS, Candidates, takeable
from aura_operator.worker.peers import Peers

ME = "worker-a"
at = BootSeconds
BEFORE = at(-1.0)
WALL = UnixSeconds(1_000_000.0)
PEERS = {"worker-a", "worker-b", "worker-c"}


def task(name: str = "t", namespace: str = "n", **fields: Any) -> TaskView:
    manifest = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "creationTimestamp": "2026-12-01T00:00:00Z",
        },
        "spec": {"agentRef": {"name": "sre"}, "input": "go"},
        "status": {"phase": "Pending", "epoch": 0, "recoveries": 0},
    }
    return replace(task_view(manifest), **fields)


def journal(schema: int) -> JournalView:
    return JournalView(schema=schema, next=1, head="h", entries=("{}",), sealed=None, sealed_next=0)


def offered(*tasks: TaskView, peers: set[str] | None = None, now: float = 0.0) -> Candidates:
    candidates = Candidates(ME)
    for each in tasks:
        candidates.offer(each, peers if peers is not None else {ME}, at(now), WALL)
    return candidates


def taken(candidates: Candidates, now: float = 0.0, *, free_slots: int = 100, running: int = 0) -> list[str]:
    names = []
    while (found := candidates.take(at(now), WALL, free_slots=free_slots, running=running)) is not None:
        names.append(f"{found.ref.namespace}/{found.ref.name}")
        free_slots -= 1
        running += 1
    return names


@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({}, True),
        ({"desired": Desired.CANCEL}, True),
        ({"desired": Desired.PAUSE}, False),
        ({"deleting": True}, False),
        ({"phase": Phase.RUNNING}, False),
        ({"phase": Phase.WAITING}, False),
        ({"phase": Phase.SUCCEEDED}, False),
        ({"journal": journal(SCHEMA)}, True),
        pytest.param({"journal": journal(SCHEMA + 1)}, False, marks=pytest.mark.behaviour(14)),
    ],
)
def test_what_may_be_claimed(fields: dict[str, Any], may: bool) -> None:
    assert takeable(task(**fields)) is may
    assert taken(offered(task(**fields))) == (["n/t"] if may else [])


def test_the_first_ranked_worker_is_due_at_once_and_the_others_each_a_little_later() -> None:
    dues = {}
    for worker in PEERS:
        candidates = Candidates(worker)
        candidates.offer(task(), PEERS, at(10.0), WALL)
        dues[worker] = candidates.next_due(BEFORE)
    assert sorted(dues.values(), key=lambda due: due or 0) == [10.0 + n * RANK_DELAY_SECONDS for n in range(3)]
    assert {worker: rank("uid-n-t", worker, PEERS) for worker in PEERS} == {
        worker: round(((due or 0) - 10.0) / RANK_DELAY_SECONDS) for worker, due in dues.items()
    }


def test_a_worker_without_live_peers_is_first() -> None:
    assert offered(task(), peers=set()).next_due(BEFORE) == 0.0


def test_nothing_is_taken_before_its_time() -> None:
    loser = max(PEERS, key=lambda worker: rank("uid-n-t", worker, PEERS))
    candidates = Candidates(loser)
    candidates.offer(task(), PEERS, at(0.0), WALL)
    assert candidates.take(at(0.0), WALL, free_slots=1, running=0) is None
    assert candidates.take(at(1.9 * RANK_DELAY_SECONDS), WALL, free_slots=1, running=0) is None
    assert candidates.take(at(2 * RANK_DELAY_SECONDS), WALL, free_slots=1, running=0) is not None
    assert candidates.next_due(BEFORE) is None


def test_seeing_the_same_chance_again_does_not_start_the_wait_anew_and_a_new_one_does() -> None:
    loser = max(PEERS, key=lambda worker: rank("uid-n-t", worker, PEERS))
    candidates = Candidates(loser)
    candidates.offer(task(), PEERS, at(0.0), WALL)
    candidates.offer(task(priority=5), PEERS, at(10.0), WALL)
    assert candidates.next_due(BEFORE) == 2 * RANK_DELAY_SECONDS
    candidates.offer(task(epoch=1), PEERS, at(20.0), WALL)
    assert candidates.next_due(BEFORE) == 20.0 + 2 * RANK_DELAY_SECONDS


def test_what_left_or_changed_its_mind_is_no_candidate_any_more() -> None:
    candidates = offered(task("a"), task("b"), task("c"))
    candidates.forget("uid-n-a")
    candidates.offer(task("b", desired=Desired.PAUSE), {ME}, at(0.0), WALL)
    assert taken(candidates) == ["n/c"]


def test_no_slot_no_claim_but_an_end_needs_none() -> None:
    candidates = offered(task("a"), task("b", desired=Desired.CANCEL), task("c", desired=Desired.CANCEL))
    assert taken(candidates, free_slots=0, running=8) == ["n/b", "n/c"]
    assert taken(candidates, free_slots=1, running=7) == ["n/a"]


def test_higher_priority_goes_first_and_namespaces_take_turns() -> None:
    many = [task(f"m{number}", "many") for number in range(4)]
    few = [task(f"f{number}", "few") for number in range(2)]
    urgent = task("u", "many", priority=10)
    assert taken(offered(*many, *few, urgent)) == [
        "many/u",
        "few/f0",
        "many/m0",
        "few/f1",
        "many/m1",
        "many/m2",
        "many/m3",
    ]


def test_a_postponed_task_waits_and_holds_nobody_up() -> None:
    candidates = offered(task("a"), task("b"))
    first = candidates.take(at(0.0), WALL, free_slots=2, running=0)
    assert first is not None
    candidates.postpone(first, 5.0)
    assert taken(candidates, 1.0) == ["n/b"]
    assert candidates.next_due(BEFORE) == 5.0
    assert taken(candidates, 5.0) == [f"n/{first.ref.name}"]


@pytest.mark.behaviour(12)
def test_a_task_that_cost_its_workers_their_lives_runs_alone() -> None:
    suspect = task("suspect", recoveries=QUARANTINE_RECOVERIES)
    candidates = offered(suspect, task("good"))
    assert candidates.take(at(0.0), WALL, free_slots=7, running=1) is not None, "the good one"
    assert candidates.take(at(0.0), WALL, free_slots=7, running=1) is None, "not beside others"
    alone = candidates.take(at(0.0), WALL, free_slots=8, running=0)
    assert alone is not None and alone.ref.name == "suspect"


@pytest.mark.behaviour(12)
def test_a_suspect_that_waits_too_long_gets_room_made() -> None:
    suspect = task("suspect", recoveries=QUARANTINE_RECOVERIES)
    candidates = offered(suspect, task("good"))
    late = at(PATIENCE_SECONDS + 0.1)
    assert candidates.take(late, WALL, free_slots=7, running=1) is None, "its first-ranked worker takes nothing else"
    ending = task("ending", desired=Desired.CANCEL)
    candidates.offer(ending, {ME}, late, WALL)
    assert candidates.take(late, WALL, free_slots=7, running=1) is not None, "but ends what has to end"
    found = candidates.take(late, WALL, free_slots=8, running=0)
    assert found is not None


@pytest.mark.behaviour(12)
def test_only_the_first_ranked_worker_makes_room() -> None:
    suspect = task("suspect", recoveries=QUARANTINE_RECOVERIES)
    loser = max(PEERS, key=lambda worker: rank(suspect.uid, worker, PEERS))
    candidates = Candidates(loser)
    candidates.offer(suspect, PEERS, at(0.0), WALL)
    candidates.offer(task("good"), {loser}, at(0.0), WALL)
    found = candidates.take(at(PATIENCE_SECONDS + 1), WALL, free_slots=7, running=1)
    assert found is not None and found.ref.name == "good"


# Peers


def lease(worker: str, *, slots: int = 4, renewed: float = 1.0) -> Manifest:
    annotations = {POD_UID: "uid", FREE_SLOTS: str(slots)}
    return new_lease(
        lease_ref("aura-system", worker),
        holder=f"{worker}.1",
        seconds=15,
        now=renewed,
        role="worker",
        annotations=annotations,
    )


def test_a_peer_counts_while_its_lease_changes_and_has_slots() -> None:
    peers = Peers()
    peers.seen(lease("a"), at(100.0))
    peers.seen(lease("full", slots=0), at(100.0))
    peers.seen(lease("b"), at(110.0))
    assert peers.with_free_slots(at(114.9)) == {"a", "b"}
    assert peers.with_free_slots(at(115.0)) == {"b"}
    peers.seen(lease("a"), at(116.0))
    assert peers.with_free_slots(at(117.0)) == {"b"}, "the same Lease seen again is no sign of life"
    peers.seen(lease("a", renewed=2.0), at(118.0))
    assert peers.with_free_slots(at(119.0)) == {"a", "b"}
    peers.gone(lease("b"))
    peers.gone(lease("never seen"))
    assert peers.with_free_slots(at(119.0)) == {"a"}


def test_slots_are_taken_from_the_newest_lease_also_without_a_renewal() -> None:
    peers = Peers()
    peers.seen(lease("a"), at(100.0))
    peers.seen(lease("a", slots=0), at(101.0))
    assert peers.with_free_slots(at(102.0)) == set()


@pytest.mark.behaviour(25)
def test_a_task_whose_deadline_passed_is_ended_without_a_slot_also_while_it_is_paused() -> None:
    late = task("late", active_deadline_seconds=60.0, started_at=WALL - 60)
    assert taken(offered(late), free_slots=0, running=8) == ["n/late"]
    in_time = task("in-time", active_deadline_seconds=60.0, started_at=WALL - 59)
    assert taken(offered(in_time), free_slots=0, running=8) == []
    paused = offered(replace(in_time, desired=Desired.PAUSE))
    assert paused.next_due(BEFORE) == 1.0
    assert paused.take(at(2.0), WALL, free_slots=8, running=0) is None
    assert paused.take(at(2.0), UnixSeconds(WALL + 1), free_slots=0, running=8) is not None


@pytest.mark.behaviour(12)
@pytest.mark.parametrize(("proof", "last"), [(Proof.CONTAINER_RESTARTED, True), (Proof.RELEASED, False)])
def test_a_worker_that_died_with_a_task_lets_the_others_try_it_first(proof: Proof, last: bool) -> None:
    for worker in PEERS:
        end = LastEnd(owner=Owner(worker=worker, incarnation="old"), epoch=1, proof=proof)
        candidates = Candidates(worker)
        candidates.offer(task(epoch=1, last_end=end), PEERS, at(0.0), WALL)
        assert (candidates.next_due(BEFORE) == len(PEERS) * RANK_DELAY_SECONDS) is last
