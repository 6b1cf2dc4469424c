"""Which controller acts: the one that holds the Lease. Owns when another's may be taken, and who is told.

All that a controller writes is conditional, so two that act at once do no harm; one is enough. The requests are
store/lease_holder.py's.
"""

from __future__ import annotations

import structlog

from aura_operator.auto_reset import AutoResetEvent
from aura_operator.clock import Clock
from aura_operator.core.ownership import LEASE_SECONDS, RENEW_SECONDS
from aura_operator.errors import StoreError
from aura_operator.store.interface import Store
from aura_operator.store.lease_holder import RETRY_SECONDS, LeaseHolder, why
from aura_operator.store.leases import POD_UID, lease_view, renew_time
from aura_operator.store.resources import Manifest, Ref

log = structlog.get_logger()

LOOK_SECONDS = 2.0


class Leadership:
    """The controllers' Lease as one of them sees it. `gained` rings whenever this one begins to lead."""

    def __init__(self, store: Store, clock: Clock, ref: Ref, *, holder: str, pod_uid: str) -> None:
        self._clock = clock
        self._pod_uid = pod_uid
        self._seen: tuple[str, str] | None = None  # holder and renewTime, last seen
        self._seen_since = 0.0
        self._holder = LeaseHolder(
            store,
            clock,
            ref,
            holder=holder,
            role="controller",
            annotations=lambda: {POD_UID: pod_uid},
            may_take=self._is_free,
        )
        self.gained = AutoResetEvent()

    @property
    def leading(self) -> bool:
        return self._holder.valid

    async def keep(self) -> None:
        """Takes the Lease when it is free, renews it while it is ours, for ever."""
        while True:
            deadline = self._holder.deadline
            try:
                holds = await self._holder.attempt()
            except (StoreError, TimeoutError) as error:
                log.warning("leader lease not reached", lease=str(self._holder.ref), error=why(error))
                await self._clock.sleep(RETRY_SECONDS)
                continue
            if not holds:
                self._holder.forgo()
            elif self._clock.boot() >= deadline:
                # It had none, or had lost it before this attempt ended: what fell due meanwhile was left to a leader.
                log.info("leading", holder=self._holder.holder)
                self.gained.set()
            await self._clock.sleep(RENEW_SECONDS if holds else LOOK_SECONDS)

    async def give_up(self) -> None:
        """Lets another take over at once, at a clean end."""
        try:
            await self._holder.give_up()
        except (StoreError, TimeoutError) as error:
            log.warning("leader lease not given up; it runs out by itself", error=why(error))

    def _is_free(self, found: Manifest) -> bool:
        """Our own container's last life has ended, or nobody has renewed it for its full duration as seen from here."""
        state = (found.get("spec", {}).get("holderIdentity", ""), renew_time(found))
        now = self._clock.boot()
        if state != self._seen:
            self._seen, self._seen_since = state, now
        duration = float(found.get("spec", {}).get("leaseDurationSeconds", LEASE_SECONDS))
        return lease_view(found).pod_uid == self._pod_uid or now - self._seen_since >= duration
