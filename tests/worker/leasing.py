"""A worker's Lease on a store that can fail, in virtual time. Owns no assertion about behaviour."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aura_operator.errors import FencedError
from aura_operator.store.leases import lease_ref, lease_view
from aura_operator.store.resources import LEASES, Manifest
from aura_operator.testing.clock import FakeClock
from aura_operator.testing.faulty import FaultyStore, calls
from aura_operator.testing.memory import MemoryStore
from aura_operator.worker.lease import WorkerLease

REF = lease_ref("aura-system", "worker-0")
RENEWALS = calls("patch", LEASES)


class Desk:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory, self.clock)
        self.slots = 8

    def lease(
        self, incarnation: str = "pod-1.a", *, pod_uid: str = "pod-1", owner: Manifest | None = None
    ) -> WorkerLease:
        return WorkerLease(
            self.store,
            self.clock,
            REF,
            incarnation=incarnation,
            pod_uid=pod_uid,
            pod_owner=owner,
            free_slots=lambda: self.slots,
        )

    async def holder(self) -> str:
        return lease_view(await self.memory.get(REF)).incarnation

    async def delete(self) -> None:
        await self.memory.delete(REF, uid=(await self.memory.get(REF))["metadata"]["uid"])


@asynccontextmanager
async def kept(lease: WorkerLease) -> AsyncIterator[asyncio.Task[None]]:
    await lease.acquire()
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(lease.keep())
        yield keeping
        keeping.cancel()


async def fenced(lease: WorkerLease) -> None:
    with pytest.raises(FencedError, match="gone or another's"):
        await lease.keep()
