"""The owners of running tasks, and what this observer knows of their lives. Owns the observer's own clock on Leases.

Must not write; orphans.py does.
"""

from __future__ import annotations

from aura_operator.core.entries import Proof
from aura_operator.core.instants import BootSeconds
from aura_operator.core.ownership import LeaseView, Observed, Owner, proof_of_death
from aura_operator.store.leases import lease_view, renew_time
from aura_operator.store.resources import Manifest, Ref

GAP_SECONDS = 4.0  # contact is looked for every second; more than this without an answer is a gap


class Owners:
    """Owners by task, Leases by name, and since when each owner has shown no sign of life. All times: boot clock."""

    def __init__(self, now: BootSeconds) -> None:
        self._tasks: dict[Owner, dict[str, Ref]] = {}
        self._owner_of: dict[str, Owner] = {}
        self._leases: dict[str, LeaseView] = {}
        self._renewals: dict[str, str] = {}
        self._signs: dict[Owner, float] = {}
        self._contact_since = now
        self._last_contact = now

    def contact(self, now: BootSeconds) -> None:
        """The server has answered just now. After a gap all timers start anew."""
        if now - self._last_contact > GAP_SECONDS:
            self._contact_since = now
        self._last_contact = now

    def lease(self, manifest: Manifest, now: BootSeconds) -> Owner:
        """Takes a worker's Lease in, as a read or a watch showed it."""
        view = lease_view(manifest)
        owner = Owner(worker=view.worker, incarnation=view.incarnation)
        renewed = f"{view.incarnation} {renew_time(manifest)}"
        if self._renewals.get(view.worker) != renewed:
            self._renewals[view.worker] = renewed
            self._signs[owner] = now
        self._leases[view.worker] = view
        return owner

    def lease_gone(self, worker: str) -> None:
        self._leases.pop(worker, None)
        self._renewals.pop(worker, None)

    def runs(self, uid: str, ref: Ref, owner: Owner, now: BootSeconds) -> None:
        """A task is running in the hands of `owner`."""
        self.ended(uid, but=owner)
        self._owner_of[uid] = owner
        self._tasks.setdefault(owner, {})[uid] = ref
        self._signs.setdefault(owner, now)

    def ended(self, uid: str, *, but: Owner | None = None) -> None:
        """A task isn't running any more, or not in the hands of anybody but `but`."""
        owner = self._owner_of.get(uid)
        if owner is None or owner == but:
            return
        del self._owner_of[uid]
        tasks = self._tasks[owner]
        del tasks[uid]
        if not tasks:
            del self._tasks[owner]
            if owner.worker not in self._leases or self._leases[owner.worker].incarnation != owner.incarnation:
                self._signs.pop(owner, None)

    def all(self) -> list[Owner]:
        return list(self._tasks)

    def tasks(self, owner: Owner) -> list[Ref]:
        return list(self._tasks.get(owner, {}).values())

    def proof(self, owner: Owner, now: BootSeconds) -> Proof | None:
        """Why the owner can't be running anything any more, by what is known now."""
        observed = Observed(
            uninterrupted_seconds=now - self._contact_since if now - self._last_contact <= GAP_SECONDS else 0.0,
            unchanged_seconds=now - self._signs.get(owner, now),
        )
        return proof_of_death(owner, self._leases.get(owner.worker), observed)

    def live(self, now: BootSeconds) -> list[LeaseView]:
        """The Leases of the workers that live."""
        return [
            view
            for view in self._leases.values()
            if now - self._signs.get(Owner(worker=view.worker, incarnation=view.incarnation), now)
            < view.duration_seconds
        ]
