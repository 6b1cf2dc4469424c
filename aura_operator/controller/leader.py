"""Which controller acts: the one that holds the Lease. Owns taking and keeping it, by this process's own clock.

All that a controller writes is conditional, so two that act at once do no harm; one is enough.
"""

from __future__ import annotations

import asyncio

import structlog

from aura_operator.clock import Clock
from aura_operator.core.ownership import DEADLINE_SECONDS, LEASE_SECONDS, RENEW_SECONDS
from aura_operator.errors import AlreadyExistsError, NotFoundError, PreconditionFailedError, StoreError
from aura_operator.store.interface import Store
from aura_operator.store.leases import POD_UID, lease_view, new_lease, renew_time, renewal, takeover
from aura_operator.store.resources import LEASES, Manifest, Ref

log = structlog.get_logger()

LOOK_SECONDS = 2.0
ATTEMPT_SECONDS = 3.0


class Leadership:
    """The controllers' Lease as one of them sees it."""

    def __init__(self, store: Store, clock: Clock, ref: Ref, holder: str, pod_uid: str) -> None:
        self._store = store
        self._clock = clock
        self._ref = ref
        self._holder = holder
        self._pod_uid = pod_uid
        self._deadline = 0.0  # on the boot clock
        self._seen: tuple[str, str] | None = None  # holder and renewTime, last seen
        self._seen_since = 0.0
        self.gained = asyncio.Event()

    @property
    def leading(self) -> bool:
        return self._clock.boot() < self._deadline

    async def keep(self) -> None:
        """Takes the Lease when it is free, renews it while it is ours, for ever."""
        while True:
            was_leading = self.leading
            sent = self._clock.boot()
            try:
                async with asyncio.timeout(ATTEMPT_SECONDS):
                    holds = await self._attempt()
            except (StoreError, TimeoutError) as error:
                log.warning("leader lease not reached", lease=str(self._ref), error=str(error) or "timeout")
                await self._clock.sleep(0.5)
                continue
            if holds:
                self._deadline = sent + DEADLINE_SECONDS
                if not was_leading:
                    log.info("leading", holder=self._holder)
                    self.gained.set()
            else:
                self._deadline = 0.0
            await self._clock.sleep(RENEW_SECONDS if holds else LOOK_SECONDS)

    async def give_up(self) -> None:
        """Lets another take over at once, at a clean end."""
        self._deadline = 0.0
        try:
            found = await self._store.get(self._ref)
            if found["spec"].get("holderIdentity") == self._holder:
                await self._store.delete(self._ref, uid=found["metadata"]["uid"])
        except StoreError as error:
            log.warning("leader lease not given up; it runs out by itself", error=str(error))

    async def _attempt(self) -> bool:
        try:
            found = await self._store.get(self._ref)
        except NotFoundError:
            return await self._create()
        now = self._clock.now()
        try:
            if found["spec"].get("holderIdentity") == self._holder:
                await self._store.patch(self._ref, renewal(self._holder, now, {}))
                return True
            # Our own container's last life has ended, or nobody has renewed it for long enough.
            if lease_view(found).pod_uid == self._pod_uid or self._ran_out(found):
                annotations = {POD_UID: self._pod_uid}
                await self._store.patch(
                    self._ref, takeover(found, holder=self._holder, now=now, annotations=annotations)
                )
                return True
        except PreconditionFailedError:
            return False
        return False

    async def _create(self) -> bool:
        manifest = new_lease(
            self._ref,
            holder=self._holder,
            seconds=int(LEASE_SECONDS),
            now=self._clock.now(),
            role="controller",
            annotations={POD_UID: self._pod_uid},
        )
        try:
            await self._store.create(LEASES, manifest)
        except AlreadyExistsError:
            return False
        return True

    def _ran_out(self, found: Manifest) -> bool:
        """Whether the Lease has not changed for its full duration, as this process saw it."""
        state = (found["spec"].get("holderIdentity", ""), renew_time(found))
        now = self._clock.boot()
        if state != self._seen:
            self._seen, self._seen_since = state, now
        return now - self._seen_since >= float(found["spec"].get("leaseDurationSeconds", LEASE_SECONDS))
