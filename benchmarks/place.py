"""The cluster, namespace and clients of a benchmark run. Owns setting them up and taking them down."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from aura_operator.clock import SystemClock
from aura_operator.core.ownership import Owner, incarnation_of
from aura_operator.store.events import EventRecorder
from aura_operator.store.leases import lease_ref
from aura_operator.worker.lease import WorkerLease
from aura_operator.worker.task.live import WorkerContext
from benchmarks.recording import RecordingStore
from hack.cluster import Cluster
from hack.install import NAMESPACE, install
from hack.kubectl import Kubectl

NAME = "bench"


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster of its own, gone afterwards."""
    bench = Cluster(NAME)
    bench.up()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    try:
        install(bench.kubeconfig, values={"scope": {"clusterWide": True}})
        yield bench
    finally:
        bench.down()


def namespace(bench: Cluster) -> str:
    name = f"bench-{uuid.uuid4().hex[:8]}"
    Kubectl(bench.kubeconfig)("create", "namespace", name)
    return name


def kubernetes_version(bench: Cluster) -> str:
    version: str = Kubectl(bench.kubeconfig).json("version")["serverVersion"]["gitVersion"]
    return version


@dataclass(frozen=True, kw_only=True)
class Seat:
    """A worker's seat in this process: the means that its runners get."""

    store: RecordingStore
    context: WorkerContext


@asynccontextmanager
async def seat(kubeconfig: Path) -> AsyncIterator[Seat]:
    """A worker's Lease, kept for the time of the block."""
    clock = SystemClock()
    store = await RecordingStore.connect(str(kubeconfig))
    name, pod_uid = f"bench-{uuid.uuid4().hex[:8]}", str(uuid.uuid4())
    owner = Owner(worker=name, incarnation=incarnation_of(pod_uid, "bench"))
    lease = WorkerLease(
        store,
        clock,
        lease_ref(NAMESPACE, name),
        incarnation=owner.incarnation,
        pod_uid=pod_uid,
        pod_owner=None,
        free_slots=lambda: 0,
    )
    await lease.acquire()
    keeping = asyncio.create_task(lease.keep())
    events = EventRecorder(store, clock, component="bench", instance=name)
    try:
        yield Seat(
            store=store, context=WorkerContext(store=store, clock=clock, lease=lease, owner=owner, events=events)
        )
    finally:
        keeping.cancel()
        await lease.give_up()
        await store.aclose()
