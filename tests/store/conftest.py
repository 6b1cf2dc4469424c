"""The three grounds that every store check runs on: memory, memory that loses answers, and a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aura_operator.store.clock import SystemClock
from aura_operator.store.kube import KubeStore
from aura_operator.testing.faulty import FaultyStore, LoseAnswer, calls
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.store_checks import Ground
from tests.conftest import AnyCluster


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
        faulty.add(LoseAnswer(), calls("create"))
    yield Ground(store=faulty, user_store=memory, clock=clock, namespace="test")
