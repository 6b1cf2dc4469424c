"""Who runs a task: ranks among workers, and proof that an owner can't be running any more.

Pure; clocks of two machines are never compared. Leases and claims themselves are written by store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from aura_operator.core.entries import Proof

LEASE_SECONDS = 15.0  # others may take a worker's tasks when its Lease has been unchanged for this time
RENEW_SECONDS = 5.0
DEADLINE_SECONDS = 10.0  # the worker's own: it starts nothing new from this time after its last renewal was sent
RANK_DELAY_SECONDS = 0.03
QUARANTINE_RECOVERIES = 2  # a task recovered this many times without progress runs alone on its worker


def rank(task_uid: str, worker: str, candidates: Iterable[str]) -> int:
    """The place (0 is first) of `worker` among the candidates for a task, by rendezvous hash: all workers agree
    without talking, and one that comes or goes moves only its own share."""
    mine = _weight(task_uid, worker)
    return sum(1 for other in candidates if other != worker and _weight(task_uid, other) > mine)


def _weight(task_uid: str, worker: str) -> tuple[bytes, str]:
    return blake2b(f"{task_uid}/{worker}".encode(), digest_size=8).digest(), worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner that a task names: the worker (its Lease's name) and one life of its process."""

    worker: str
    incarnation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    """A worker's Lease as a fresh read showed it. `incarnation` is its holderIdentity,
    `journal_schema` the highest that the worker reads."""

    worker: str
    incarnation: str
    pod_uid: str
    duration_seconds: float
    free_slots: int
    journal_schema: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one observer's own clock says: for how long it has heard from the server without a gap, and for how long
    it has seen no renewal by this owner, both in seconds."""

    uninterrupted_seconds: float
    unchanged_seconds: float


def incarnation_of(pod_uid: str, nonce: str) -> str:
    """The name of one life of a worker process. It carries its Pod's UID, so that whoever reads a task can tell a
    restarted container from another Pod of the same name without having seen the old Lease."""
    return f"{pod_uid}.{nonce}"


def pod_uid_of(incarnation: str) -> str:
    return incarnation.rpartition(".")[0]


def proof_of_death(owner: Owner, lease: LeaseView | None, observed: Observed) -> Proof | None:
    """Why nobody can be running the owner's tasks any more, or None while the owner may still be alive.

    `lease` is the one named after the owner's worker, as a fresh read showed it. One that is gone proves nothing by
    itself: a deleted Pod's process may still run.
    """
    other = lease is not None and lease.incarnation != owner.incarnation
    if lease is not None and other and lease.pod_uid == pod_uid_of(owner.incarnation):
        return Proof.CONTAINER_RESTARTED  # the kubelet starts a container only after the end of the last one
    duration = LEASE_SECONDS if lease is None or other else lease.duration_seconds
    if min(observed.uninterrupted_seconds, observed.unchanged_seconds) >= duration:
        return Proof.LEASE_EXPIRED
    return None
