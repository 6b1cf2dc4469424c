"""The three grounds that every store check runs on: memory, memory that loses answers, and a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aura_operator.clock import SystemClock
from aura_operator.store.kube import KubeStore
from aura_operator.store.resources import Ref
from aura_operator.testing.faulty import Call, FaultyStore, LoseAnswer, Predicate, calls
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.store_checks_writes import Ground
from hack.cluster import AnyCluster


def first_creation_of_each() -> Predicate:
    """Each object's first creation: the second one must be told that it is there already."""
    tried: set[Ref | None] = set()

    def is_first(call: Call) -> bool:
        if call.method != "create" or call.ref in tried:
            return False
        tried.add(call.ref)
        return True

    return is_first


@pytest.fixture(params=["memory", "lost answers", "api server"])
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    clock = SystemClock()
    if request.param == "api server":
        cluster: AnyCluster = request.getfixturevalue("cluster")
        store = await KubeStore.connect(str(cluster.kubeconfig))
        yield Ground(store=store, user_store=store, clock=clock, namespace=request.getfixturevalue("namespace"))
        await store.aclose()
        return
    memory = MemoryStore(clock)
    faulty = FaultyStore(memory, clock)
    if request.param == "lost answers":
        faulty.add(LoseAnswer(), calls("patch"))
        faulty.add(LoseAnswer(), first_creation_of_each())
    yield Ground(store=faulty, user_store=memory, clock=clock, namespace="test")
