"""The one call that checks a Store whole. Owns the order of its checks; what they check is in store_checks*.py."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial

from aura_operator.store.writes import Write
from aura_operator.testing.store_checks import EACH_WRITE
from aura_operator.testing.store_checks_lists import LISTS
from aura_operator.testing.store_checks_objects import OBJECTS
from aura_operator.testing.store_checks_rules import SINGLE
from aura_operator.testing.store_checks_writes import WRITES, Ground

Check = Callable[[Ground], Awaitable[None]]
MakeWrite = Callable[[Ground], Awaitable[Write]]
WriteCheck = Callable[[Ground, MakeWrite], Awaitable[None]]


def _all() -> dict[str, Check]:
    checks: dict[str, Check] = {check.__name__: check for check in (*OBJECTS, *LISTS, *SINGLE)}
    for name, make in WRITES.items():
        checks |= {f"{name} {check.__name__}": partial(_with_write, check, make) for check in EACH_WRITE}
    return checks


async def _with_write(check: WriteCheck, make: MakeWrite, ground: Ground) -> None:
    await check(ground, make)


STORE_CHECKS: dict[str, Check] = _all()
"""All checks by name; each needs a namespace of its own."""


async def check_store(make: Callable[[], AbstractAsyncContextManager[Ground]]) -> None:
    """Runs all checks, one after the other, each on a ground of its own. Seconds in memory, minutes on a real server.

    To see each check as a test of its own, parametrise a test with `STORE_CHECKS` and await `check(ground)`.

    Args:
        make: gives the ground of one check: the Store, and a namespace with nothing in it. Its context manager closes
            what it opened. The server behind it has the CRDs and the admission policies of the chart.

    Raises:
        AssertionError: the Store doesn't do what its port says; a note names the check.
        Exception: whatever else the Store raises, with the same note.
    """
    for name, check in STORE_CHECKS.items():
        try:
            async with make() as ground:
                await check(ground)
        except Exception as error:
            error.add_note(f"store check: {name}")
            raise
