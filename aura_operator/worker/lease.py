"""The worker's Lease: proof to others that this process lives, and to itself that it may still start things.

Owns what losing the Lease means: one that is gone or foreign fences the process for good. The requests are
store/lease_holder.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from aura_operator.clock import Clock
from aura_operator.core import codec
from aura_operator.core.ownership import RENEW_SECONDS
from aura_operator.errors import FencedError, NotFoundError, PreconditionFailedError, StoreError
from aura_operator.store.interface import Store
from aura_operator.store.lease_holder import RETRY_SECONDS, LeaseHolder, why
from aura_operator.store.leases import FREE_SLOTS, JOURNAL_SCHEMA, POD_UID, lease_view
from aura_operator.store.resources import Manifest, Ref

log = structlog.get_logger()


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
        self._clock = clock
        self._pod_uid = pod_uid
        self._free_slots = free_slots
        self._renewed = asyncio.Event()
        self._holder = LeaseHolder(
            store,
            clock,
            ref,
            holder=incarnation,
            role="worker",
            annotations=self._annotations,
            may_take=self._is_our_pods,
            pod=pod_owner,
        )
        self.lapses = 0

    def may_start(self) -> bool:
        """Whether something may be started now: nobody else can have a right to this worker's tasks yet."""
        return self._holder.valid

    async def until_renewed(self) -> None:
        """Returns once a renewal has succeeded after this call."""
        self._renewed.clear()
        await self._renewed.wait()

    async def acquire(self) -> None:
        """Creates the Lease or, for a restarted container, takes it over. Waits while another Pod's is in the way."""
        while True:
            try:
                if await self._holder.attempt():
                    self._renewed.set()
                    return
            except (StoreError, TimeoutError) as error:
                log.warning("lease not acquired yet", lease=str(self._holder.ref), error=why(error))
            await self._clock.sleep(RETRY_SECONDS)

    async def keep(self) -> None:
        """Renews for ever. Raises FencedError once the Lease is gone or foreign; the process must end then."""
        ref = self._holder.ref
        pause = RENEW_SECONDS
        while True:
            await self._clock.sleep(pause)
            try:
                await self._renew()
            except (NotFoundError, PreconditionFailedError) as error:
                raise FencedError(
                    f"Lease {ref.namespace}/{ref.name} is gone or another's; this worker stops: {error}"
                ) from error
            except (StoreError, TimeoutError) as error:
                log.warning("lease not renewed", lease=str(ref), error=why(error))
                pause = RETRY_SECONDS
            else:
                pause = RENEW_SECONDS

    async def give_up(self) -> None:
        """Deletes the Lease at a clean end, when nothing is owned any more."""
        try:
            await self._holder.give_up()
        except (StoreError, TimeoutError) as error:
            log.warning("lease not deleted; it runs out by itself", lease=str(self._holder.ref), error=why(error))

    async def _renew(self) -> None:
        deadline = self._holder.deadline
        await self._holder.renew()
        if self._clock.boot() >= deadline:
            self.lapses += 1
        self._renewed.set()

    def _is_our_pods(self, found: Manifest) -> bool:
        """The kubelet starts a container only after its last life has ended; of another Pod nothing is known."""
        found_uid = lease_view(found).pod_uid
        if found_uid != self._pod_uid:
            log.warning(
                "a Lease of this name belongs to another Pod; waiting until it is deleted",
                lease=str(self._holder.ref),
                pod_uid=found_uid,
            )
        return found_uid == self._pod_uid

    def _annotations(self) -> dict[str, str]:
        slots, schema = str(self._free_slots()), str(codec.SCHEMA)
        return {POD_UID: self._pod_uid, FREE_SLOTS: slots, JOURNAL_SCHEMA: schema}
