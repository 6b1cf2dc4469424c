"""What every Store promises: in memory, where answers get lost, on a real API server; and who breaks it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aura_operator.clock import SystemClock
from aura_operator.store.resources import Ref
from aura_operator.store.writes import Write
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.store_checks import EACH_WRITE
from aura_operator.testing.store_checks_lists import LISTS
from aura_operator.testing.store_checks_objects import OBJECTS
from aura_operator.testing.store_checks_rules import SINGLE
from aura_operator.testing.store_checks_writes import WRITES, Ground
from aura_operator.testing.store_contract import check_store

Check = Callable[[Ground], Coroutine[Any, Any, None]]
Make = Callable[[Ground], Awaitable[Write]]


@pytest.mark.parametrize("check", [*OBJECTS, *LISTS], ids=lambda check: check.__name__)
async def test_promise(ground: Ground, check: Check) -> None:
    await check(ground)


@pytest.mark.behaviour(11)
@pytest.mark.parametrize("make", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("check", EACH_WRITE, ids=lambda check: check.__name__)
async def test_each_write(
    ground: Ground, check: Callable[[Ground, Make], Coroutine[Any, Any, None]], make: Make
) -> None:
    """It lands once, under its tests, and knows it."""
    await check(ground, make)


@pytest.mark.behaviour(7)
@pytest.mark.behaviour(17)
@pytest.mark.parametrize("check", SINGLE, ids=lambda check: check.__name__)
async def test_rule(ground: Ground, check: Check) -> None:
    await check(ground)


class Careless(MemoryStore):
    """Deletes whatever has that name."""

    async def delete(self, ref: Ref, *, uid: str) -> None:
        found = await self.get(ref)
        await super().delete(ref, uid=found["metadata"]["uid"])


async def test_one_call_checks_a_store_whole_and_names_what_it_breaks() -> None:
    def on(kind: type[MemoryStore]) -> Callable[[], Any]:
        @asynccontextmanager
        async def ground() -> AsyncIterator[Ground]:
            clock = SystemClock()
            store = kind(clock)
            yield Ground(store=store, user_store=store, clock=clock, namespace="test")

        return ground

    await check_store(on(MemoryStore))
    with pytest.raises(AssertionError, match="no NotFoundError was raised") as broken:
        await check_store(on(Careless))
    assert broken.value.__notes__ == ["store check: the_errors_of_names"]
