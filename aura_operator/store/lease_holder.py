"""Taking, renewing and giving up one Lease. Owns the requests and the deadline that follows from them.

Not here: whose Lease may be taken over, and what losing one means. Workers and controllers differ in both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aura_operator.clock import Clock
from aura_operator.core.ownership import DEADLINE_SECONDS, LEASE_SECONDS
from aura_operator.errors import AlreadyExistsError, NotFoundError, PreconditionFailedError, StoreError
from aura_operator.store.interface import Op, Store
from aura_operator.store.leases import new_lease, renewal, takeover
from aura_operator.store.resources import Manifest, Ref

ATTEMPT_SECONDS = 3.0
RETRY_SECONDS = 0.5
GIVE_UP_SECONDS = 2.0  # a process that ends has better to do than to wait for a server that is silent


class LeaseHolder:
    """One Lease as one process holds it, or would like to.

    `annotations` are read anew for each request. `may_take` says of another holder's Lease, as it was found, whether
    it may be taken over. `pod` is an owner reference, so that the Lease goes with its Pod.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ref: Ref,
        *,
        holder: str,
        role: str,
        annotations: Callable[[], dict[str, str]],
        may_take: Callable[[Manifest], bool],
        pod: Manifest | None = None,
    ) -> None:
        self.ref = ref
        self.holder = holder
        self._store = store
        self._clock = clock
        self._role = role
        self._annotations = annotations
        self._may_take = may_take
        self._pod = pod
        self.deadline = 0.0  # on the boot clock: until then nobody else can have a right to the Lease

    @property
    def valid(self) -> bool:
        """Whether the Lease counts as held, by this process's own clock."""
        return self._clock.boot() < self.deadline

    async def attempt(self) -> bool:
        """Creates the Lease, renews it, or takes it over where that is allowed. False if it is another's for now.

        Raises StoreError or TimeoutError where it stays unknown.
        """
        sent = self._clock.boot()
        async with asyncio.timeout(ATTEMPT_SECONDS):
            held = await self._attempt()
        if held:
            self._valid_from(sent)
        return held

    async def renew(self) -> None:
        """Renews what was taken before. Raises NotFoundError or PreconditionFailedError if it is gone or another's,
        StoreError or TimeoutError where that stays unknown."""
        sent = self._clock.boot()
        async with asyncio.timeout(ATTEMPT_SECONDS):
            await self._store.patch(self.ref, self._renewal())
        self._valid_from(sent)

    def forgo(self) -> None:
        """Counts the Lease as not held, from now on."""
        self.deadline = 0.0

    async def give_up(self) -> None:
        """Deletes the Lease if it is this process's own. Raises StoreError or TimeoutError; then it runs out."""
        self.forgo()
        async with asyncio.timeout(GIVE_UP_SECONDS):
            found = await self._store.get(self.ref)
            if found.get("spec", {}).get("holderIdentity") == self.holder:
                await self._store.delete(self.ref, uid=found["metadata"]["uid"])

    async def _attempt(self) -> bool:
        try:
            found = await self._store.get(self.ref)
        except NotFoundError:
            return await self._create()
        if found.get("spec", {}).get("holderIdentity") == self.holder:
            # It may come from an earlier attempt whose answer was lost long ago. It counts from now, so it is renewed.
            return await self._patched(self._renewal())
        if not self._may_take(found):
            return False
        now = self._clock.now()
        return await self._patched(takeover(found, holder=self.holder, now=now, annotations=self._annotations()))

    async def _create(self) -> bool:
        manifest = new_lease(
            self.ref,
            holder=self.holder,
            seconds=int(LEASE_SECONDS),
            now=self._clock.now(),
            role=self._role,
            annotations=self._annotations(),
        )
        if self._pod is not None:
            manifest["metadata"]["ownerReferences"] = [self._pod]
        try:
            await self._store.create(self.ref.resource, manifest)
        except AlreadyExistsError:
            return False
        return True

    async def _patched(self, ops: list[Op]) -> bool:
        try:
            await self._store.patch(self.ref, ops)
        except PreconditionFailedError:
            return False
        return True

    def _renewal(self) -> list[Op]:
        return renewal(self.holder, self._clock.now(), self._annotations())

    def _valid_from(self, sent: float) -> None:
        # From when it was sent: the server may have carried it out just then, and others count from that.
        self.deadline = sent + DEADLINE_SECONDS


def why(error: StoreError | TimeoutError) -> str:
    """What a request to the server met, in words for the log."""
    return str(error) or "no answer in time"
