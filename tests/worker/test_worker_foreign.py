"""Whatever a model, a tool or a factory of others raises is its own task's trouble: worker and others go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aura_operator.core.lifecycle import Phase
from aura_operator.foreign import contained, in_own_thread
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import virtual_time
from tests.worker.fakes import LedgerTools, ProgramModel
from tests.worker.world import ONE, Life, one_worker

ENDS: tuple[Callable[[], BaseException], ...] = (
    lambda: SystemExit("no licence"),
    KeyboardInterrupt,
    asyncio.CancelledError,
    lambda: BaseExceptionGroup("several", [SystemExit(1), KeyboardInterrupt()]),
)
PLACES = (
    (ProgramModel, "respond"),
    (LedgerTools, "start"),
    (LedgerTools, "call"),
    (LedgerTools, "fresh"),
    (Life, "_runtime"),  # what makes the runtime of a revision
)


@pytest.mark.behaviour(43)
@pytest.mark.parametrize("make", ENDS, ids=["exit", "interrupt", "cancelled", "group"])
@pytest.mark.parametrize(("port", "method"), PLACES, ids=[method for _, method in PLACES])
@virtual_time
async def test_nothing_that_a_stranger_raises_ends_the_worker(
    port: type, method: str, make: Callable[[], BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[BaseException] = []

    def raises_at_once(*_: object) -> None:
        met.append(make())
        raise met[-1]

    async def raises(*_: object) -> None:
        raises_at_once()

    async with one_worker([("s__approved",)]) as (world, life):
        with monkeypatch.context() as patch:
            patch.setattr(port, method, raises_at_once if port is Life else raises)
            await world.create()
            await world.until(ONE, Phase.FAILED, Phase.WAITING, Phase.PENDING)
            await world.clock.sleep(30)
        assert met, "the stranger was never called"
        assert life.worker.not_ready() is None
        await world.create(other := task_ref("n", "two"))
        assert (await world.ended(other))["phase"] == "Succeeded"


@pytest.mark.behaviour(43)
@pytest.mark.parametrize("make", ENDS, ids=["exit", "interrupt", "cancelled", "group"])
@virtual_time
async def test_what_can_t_be_closed_is_no_reason_to_die(
    make: Callable[[], BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[ProgramModel] = []

    async def raises(_: object) -> None:
        raise make()

    async def closes(model: ProgramModel) -> None:
        closed.append(model)

    monkeypatch.setattr(LedgerTools, "aclose", raises)
    monkeypatch.setattr(ProgramModel, "aclose", closes)
    async with one_worker() as (world, life):
        await world.create()
        assert (await world.ended())["phase"] == "Succeeded"
        await world.clock.sleep(600)  # the runtime has been closed
        assert life.worker.not_ready() is None and len(closed) == 1
        await world.create(other := task_ref("n", "two"))
        assert (await world.ended(other))["phase"] == "Succeeded"


async def test_a_cancellation_that_somebody_asked_for_passes() -> None:
    async def waits() -> None:
        with contained("it"):
            await asyncio.sleep(60)

    waiting = asyncio.create_task(waits())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_a_thread_of_its_own_raises_is_an_exception_here() -> None:
    def stops() -> None:
        raise StopIteration

    def leaves() -> None:
        raise SystemExit("no licence")

    for function, told in ((stops, "StopIteration"), (leaves, "no licence")):
        with pytest.raises(RuntimeError, match=told):
            await in_own_thread(function, "a stranger's")
