"""Ownership: proof of death, ranks, and tasks that kill their workers."""

from __future__ import annotations

import pytest

from aura_operator.core.decide import decide
from aura_operator.core.entries import (
    Claimed,
    Entry,
    Proof,
)
from aura_operator.core.lifecycle import Phase
from aura_operator.core.limits import Limits
from aura_operator.core.ownership import (
    LEASE_SECONDS,
    LeaseView,
    Observed,
    Owner,
    incarnation_of,
    proof_of_death,
    rank,
)
from aura_operator.core.plan import CallPlan
from tests.core.journals import NOW, answered, folded

POD, OTHER_POD = "pod-1", "pod-2"
ALICE = Owner(worker="w", incarnation=incarnation_of(POD, "a"))


def lease(incarnation: str, pod: str) -> LeaseView:
    return LeaseView(worker="w", incarnation=incarnation, pod_uid=pod, duration_seconds=LEASE_SECONDS, free_slots=1)


LONG, SHORT = LEASE_SECONDS, LEASE_SECONDS - 0.1


@pytest.mark.behaviour(7, 8)
@pytest.mark.parametrize(
    ("seen", "uninterrupted", "unchanged", "proof"),
    [
        (lease(ALICE.incarnation, POD), LONG, SHORT, None),
        (lease(ALICE.incarnation, POD), LONG, LONG, Proof.LEASE_EXPIRED),
        (lease(ALICE.incarnation, POD), SHORT, LONG, None),
        (lease(incarnation_of(POD, "b"), POD), 0, 0, Proof.CONTAINER_RESTARTED),
        (lease(incarnation_of(OTHER_POD, "b"), OTHER_POD), 0, 0, None),
        (lease(incarnation_of(OTHER_POD, "b"), OTHER_POD), LONG, LONG, Proof.LEASE_EXPIRED),
        (None, LONG, SHORT, None),
        (None, LONG, LONG, Proof.LEASE_EXPIRED),
    ],
)
def test_proof_of_death(seen: LeaseView | None, uninterrupted: float, unchanged: float, proof: Proof | None) -> None:
    observed = Observed(uninterrupted_seconds=uninterrupted, unchanged_seconds=unchanged)
    assert proof_of_death(ALICE, seen, observed) is proof


def test_ranks_are_a_permutation_and_one_that_leaves_moves_only_its_share() -> None:
    workers = [f"w{number}" for number in range(5)]
    for uid in (f"task-{number}" for number in range(50)):
        ranks = {worker: rank(uid, worker, workers) for worker in workers}
        assert sorted(ranks.values()) == list(range(5))
        first = min(ranks, key=ranks.__getitem__)
        gone = next(worker for worker in workers if worker != first)
        assert rank(uid, first, [worker for worker in workers if worker != gone]) == 0


@pytest.mark.behaviour(12)
def test_a_task_that_kills_its_workers_ends_as_poisoned_and_hand_overs_do_not_count() -> None:
    def lives(proof: Proof, count: int) -> list[Entry]:
        return [
            Claimed(at=NOW, epoch=epoch, worker="w", incarnation=f"u.{epoch}", revision="r", proof=proof)
            for epoch in range(2, 2 + count)
        ]

    limits = Limits(recoveries=5)
    assert [work.id for work in decide(folded(*lives(Proof.CONTAINER_RESTARTED, 5)), limits, NOW).work] == ["model-1-1"]
    end = decide(folded(*lives(Proof.CONTAINER_RESTARTED, 6)), limits, NOW).ending
    assert end is not None and (end.phase, end.reason) == (Phase.FAILED, "Poisoned")
    assert [work.id for work in decide(folded(*lives(Proof.RELEASED, 20)), limits, NOW).work] == ["model-1-1"]
    progress = [*lives(Proof.CONTAINER_RESTARTED, 5), answered(CallPlan(call=1, part=0, tool="s__x"))]
    assert folded(*progress).recoveries == 0
