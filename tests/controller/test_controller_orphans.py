"""Tasks of dead owners become free, and nobody else's; the real controller, in virtual time."""

from __future__ import annotations

import pytest

from aura_operator.controller.controller import AGAIN_SECONDS
from aura_operator.core.ownership import LEASE_SECONDS
from aura_operator.errors import ForbiddenError, UnavailableError
from aura_operator.store.leases import lease_ref
from aura_operator.store.resources import LEASES, TASKS
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, Slow, calls
from tests.controller.house import HOME, House


@virtual_time
async def test_the_tasks_of_a_dead_owner_are_free_when_its_lease_has_run_out_and_not_before() -> None:
    house = House()
    async with house.controlled():
        async with house.worker() as owner:
            await house.running("one", owner)
            await house.running("two", owner)
            await house.clock.advance(600)
            assert await house.phase("one") == "Running"
        await house.clock.advance(LEASE_SECONDS - 6)  # the last renewal may be five seconds old
        assert await house.phase("one") == "Running"
        await house.clock.advance(7)
        for name in ("one", "two"):
            status = await house.status(name)
            assert (status["phase"], status["recoveries"], status["lastEnd"]["proof"]) == ("Pending", 1, "LeaseExpired")
            assert "its worker a ended" in status["summary"] and "owner" not in status


@pytest.mark.behaviour(8)
@virtual_time
async def test_those_of_a_restarted_container_are_free_at_once() -> None:
    house = House()
    async with house.controlled():
        async with house.worker(nonce="1") as owner:
            await house.running("one", owner)
            await house.clock.advance(30)
        async with house.worker(nonce="2"):
            await house.clock.advance(0.1)
            assert (await house.status())["lastEnd"]["proof"] == "ContainerRestarted"


@pytest.mark.behaviour(9)
@virtual_time
async def test_an_outage_kills_nobody() -> None:
    """Renewals don't come through either, and after its end everybody has the full time again."""
    house = House()
    async with house.controlled() as (seat,), house.worker() as owner:
        await house.running("one", owner)
        await house.clock.advance(10)
        seat.store.add(Refuse(UnavailableError("down")))
        await house.clock.advance(60)
        seat.store.clear()
        await house.clock.advance(60)
        assert await house.phase() == "Running"


@virtual_time
async def test_a_task_that_may_not_be_written_holds_up_no_other_and_is_taken_when_it_may() -> None:
    house = House()
    async with house.controlled() as (seat,):
        seat.store.add(
            Refuse(ForbiddenError("no rights there")),
            lambda call: calls("patch", TASKS)(call) and call.ref is not None and call.ref.namespace == "foreign",
        )
        async with house.worker() as owner:
            await house.running("one", owner, namespace="foreign")
            await house.running("one", owner)
            await house.clock.advance(10)
        await house.clock.advance(LEASE_SECONDS + 2)
        assert await house.phase() == "Pending"
        await house.clock.advance(120)
        assert await house.phase(namespace="foreign") == "Running"
        seat.store.clear()
        await house.clock.advance(AGAIN_SECONDS + 3)
        assert await house.phase(namespace="foreign") == "Pending"


@pytest.mark.behaviour(9)
@virtual_time
async def test_a_new_leader_has_watched_before_it_led() -> None:
    """Leader and worker die together: the time of the worker's silence isn't counted from the change of leaders."""
    house = House()
    async with house.controlled("first", "second") as (first, second):
        async with house.worker() as owner:
            await house.running("one", owner)
            await house.clock.advance(30)
        await first.kill()
        await house.clock.advance(LEASE_SECONDS + 4)
        assert second.controller.leading and await house.phase() == "Pending"


@virtual_time
async def test_a_new_leader_takes_from_the_dead_before_it_has_listed_anything() -> None:
    house = House()
    async with house.controlled("first", "second") as (first, second):
        async with house.worker() as owner:
            await house.running("one", owner)
            await house.clock.advance(30)
        second.store.add(Slow(seconds=3600), lambda call: call.method == "list" and call.resource != LEASES)
        await first.kill()
        await house.clock.advance(LEASE_SECONDS + 4)
        assert second.controller.leading and await house.phase() == "Pending"


@virtual_time
async def test_a_proof_that_a_gap_in_contact_took_away_is_looked_for_again() -> None:
    """The server falls silent between the first sight of a death and its confirmation."""
    house = House()
    lease = lease_ref(HOME, "a")
    async with house.controlled() as (seat,):
        confirming = calls("get", LEASES)
        seat.store.add(Slow(seconds=8), lambda call: confirming(call) and call.ref == lease)
        seat.store.add(
            Refuse(UnavailableError("silent")),
            lambda call: call.method == "list" and any(seen.ref == lease for seen in seat.store.log),
        )
        async with house.worker() as owner:
            await house.running("one", owner)
            await house.clock.advance(10)
        await house.clock.advance(LEASE_SECONDS + 12)
        assert await house.phase() == "Running", "a gap: everybody has the full time again"
        seat.store.clear()
        await house.clock.advance(LEASE_SECONDS + 4)
        assert await house.phase() == "Pending"


@virtual_time
async def test_who_begins_to_run_a_task_in_the_name_of_a_dead_one_is_found_too() -> None:
    """A claim that was on its way when its worker died lands after the death was noticed."""
    house = House()
    async with house.controlled():
        async with house.worker() as owner:
            await house.running("one", owner)
        await house.clock.advance(LEASE_SECONDS + 5)
        assert await house.phase("one") == "Pending"
        await house.running("late", owner)
        await house.clock.advance(LEASE_SECONDS + 5)
        assert await house.phase("late") == "Pending"
