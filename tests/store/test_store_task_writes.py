"""Every write of the contract, on every Store: it lands once, under its tests, and knows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from aura_operator.store.writes import Write
from aura_operator.testing.store_checks import EACH_WRITE
from aura_operator.testing.store_checks_rules import SINGLE
from aura_operator.testing.store_checks_writes import WRITES, Ground

Make = Callable[[Ground], Awaitable[Write]]


@pytest.mark.behaviour(11)
@pytest.mark.parametrize("make", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("check", EACH_WRITE, ids=lambda check: check.__name__)
async def test_each_write(
    ground: Ground, check: Callable[[Ground, Make], Coroutine[Any, Any, None]], make: Make
) -> None:
    await check(ground, make)


@pytest.mark.behaviour(7)
@pytest.mark.behaviour(17)
@pytest.mark.parametrize("check", SINGLE, ids=lambda check: check.__name__)
async def test_rule(ground: Ground, check: Callable[[Ground], Coroutine[Any, Any, None]]) -> None:
    await check(ground)
