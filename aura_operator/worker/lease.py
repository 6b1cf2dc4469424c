"""The worker's Lease: proof to others that this process lives, and to itself that it may still start things.

Owns taking, renewing and the worker's own deadline. A Lease that is gone or foreign fences the process for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from aura_operator.clock import Clock
from aura_operator.core.ownership import DEADLINE_SECONDS, LEASE_SECONDS, RENEW_SECONDS
from aura_operator.errors import AlreadyExistsError, FencedError, NotFoundError, PreconditionFailedError, StoreError
from aura_operator.store.interface import Op, Store
from aura_operator.store.leases import FREE_SLOTS, POD_UID, lease_view, new_lease, renewal, takeover
from aura_operator.store.resources import LEASES, Manifest, Ref

log = structlog.get_logger()

RENEWAL_TIMEOUT_SECONDS = 3.0
RETRY_SECONDS = 0.5


class WorkerLease:
    """One incarnation's Lease.

    `lapses` counts how often the deadline passed before a renewal succeeded: after a lapse others may have taken this
    worker's tasks although the Lease is valid again, so each task must be read once more before an effect.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ref: Ref,
        *,
        incarnation: str,
        pod_uid: str,
        pod_owner: Manifest | None,
        free_slots: Callable[[], int],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ref = ref
        self._incarnation = incarnation
        self._pod_uid = pod_uid
        self._pod_owner = pod_owner
        self._free_slots = free_slots
        self._deadline = 0.0  # on the boot clock
        self._renewed = asyncio.Event()
        self.lapses = 0

    def may_start(self) -> bool:
        """Whether something may be started now: nobody else can have a right to this worker's tasks yet."""
        return self._clock.boot() < self._deadline

    async def until_renewed(self) -> None:
        """Returns once a renewal has succeeded after this call."""
        self._renewed.clear()
        await self._renewed.wait()

    async def acquire(self) -> None:
        """Creates the Lease or, for a restarted container, takes it over. Waits while another Pod's is in the way."""
        while True:
            sent = self._clock.boot()
            try:
                if await self._try_acquire():
                    self._valid_from(sent)
                    return
            except StoreError as error:
                log.warning("lease not acquired yet", lease=str(self._ref), error=str(error))
            await self._clock.sleep(RETRY_SECONDS)

    async def _try_acquire(self) -> bool:
        try:
            found = await self._store.get(self._ref)
        except NotFoundError:
            return await self._create()
        view = lease_view(found)
        if view.incarnation == self._incarnation:
            # An earlier attempt, whose answer was lost, perhaps long ago: it counts from now, so it is renewed now.
            ops = renewal(self._incarnation, self._clock.now(), self._annotations())
            return await self._patched(ops)
        if view.pod_uid != self._pod_uid:
            log.warning(
                "a Lease of this name belongs to another Pod; waiting until it is deleted",
                lease=str(self._ref),
                pod_uid=view.pod_uid,
            )
            return False
        now = self._clock.now()
        return await self._patched(takeover(found, holder=self._incarnation, now=now, annotations=self._annotations()))

    async def _patched(self, ops: list[Op]) -> bool:
        try:
            await self._store.patch(self._ref, ops)
        except PreconditionFailedError:
            return False
        return True

    async def _create(self) -> bool:
        manifest = new_lease(
            self._ref,
            holder=self._incarnation,
            seconds=int(LEASE_SECONDS),
            now=self._clock.now(),
            role="worker",
            annotations=self._annotations(),
        )
        if self._pod_owner is not None:
            manifest["metadata"]["ownerReferences"] = [self._pod_owner]
        try:
            await self._store.create(LEASES, manifest)
        except AlreadyExistsError:
            return False
        return True

    async def keep(self) -> None:
        """Renews for ever. Raises FencedError once the Lease is gone or foreign; the process must end then."""
        pause = RENEW_SECONDS
        while True:
            await self._clock.sleep(pause)
            sent = self._clock.boot()
            ops = renewal(self._incarnation, self._clock.now(), self._annotations())
            try:
                async with asyncio.timeout(RENEWAL_TIMEOUT_SECONDS):
                    await self._store.patch(self._ref, ops)
            except (NotFoundError, PreconditionFailedError) as error:
                raise FencedError(
                    f"Lease {self._ref.namespace}/{self._ref.name} is gone or another's; this worker stops: {error}"
                ) from error
            except (StoreError, TimeoutError) as error:
                log.warning("lease not renewed", lease=str(self._ref), error=str(error) or "timeout")
                pause = RETRY_SECONDS
            else:
                self._valid_from(sent)
                pause = RENEW_SECONDS

    async def give_up(self) -> None:
        """Deletes the Lease at a clean end, when nothing is owned any more."""
        self._deadline = 0.0
        try:
            found = await self._store.get(self._ref)
            if lease_view(found).incarnation == self._incarnation:
                await self._store.delete(self._ref, uid=found["metadata"]["uid"])
        except StoreError as error:
            log.warning("lease not deleted; it runs out by itself", lease=str(self._ref), error=str(error))

    def _valid_from(self, sent: float) -> None:
        if self._deadline and self._clock.boot() >= self._deadline:
            self.lapses += 1
        # From when it was sent: the server may have applied it just then, and others count from that.
        self._deadline = sent + DEADLINE_SECONDS
        self._renewed.set()

    def _annotations(self) -> dict[str, str]:
        return {POD_UID: self._pod_uid, FREE_SLOTS: str(self._free_slots())}
