"""Which of several controllers acts, and when another does; the real ones, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from aura_operator.controller.controller import LEADER_LEASE
from aura_operator.controller.leader import LOOK_SECONDS
from aura_operator.core.ownership import DEADLINE_SECONDS, LEASE_SECONDS, RENEW_SECONDS
from aura_operator.errors import UnavailableError
from aura_operator.store.lease_holder import GIVE_UP_SECONDS
from aura_operator.store.leases import lease_ref
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, Slow
from tests.controller.house import HOME, House, Seat


def leads(seat: Seat) -> bool:
    return seat.controller.leading


@virtual_time
async def test_of_two_one_acts_and_the_other_only_watches() -> None:
    house = House()
    async with house.controlled("first", "second") as (first, second):
        await house.asking()
        await house.approve()
        await house.clock.advance(60)
        assert await house.phase() == "Pending"
        assert first.controller.leading and not second.controller.leading
        assert first.writes and not second.writes


@pytest.mark.behaviour(18)
@virtual_time
async def test_another_takes_over_from_a_dead_one_and_does_what_it_left() -> None:
    house = House()
    async with house.controlled("first", "second") as (first, second):
        await house.asking()
        await house.clock.advance(5)
        await first.kill()
        await house.approve()
        began = house.clock.boot()
        while await house.phase() != "Pending":
            await house.clock.advance(0.5)
            assert house.clock.boot() - began < 60
        assert LEASE_SECONDS - 5 <= house.clock.boot() - began <= LEASE_SECONDS + LOOK_SECONDS + 1
        assert second.controller.leading


@virtual_time
async def test_one_that_ends_in_good_order_makes_room_at_once() -> None:
    house = House()
    async with house.controlled("first", "second") as (first, second):
        await house.clock.advance(5)
        await first.ended()
        await house.clock.advance(LOOK_SECONDS + 0.1)
        assert second.controller.leading and not first.controller.leading


@pytest.mark.behaviour(8)
@virtual_time
async def test_the_next_life_of_the_same_container_leads_at_once() -> None:
    house = House()
    async with house.controlled("first") as (first,):
        await house.clock.advance(5)
        await first.kill()
        next_life = Seat(house, "first-2", "pod-first")
        next_life.start()
        await house.clock.advance(0.1)
        assert next_life.controller.leading
        await next_life.kill()


@virtual_time
async def test_one_that_is_cut_off_stops_before_another_begins() -> None:
    house = House()
    async with house.controlled("first", "second") as (first, second):
        await house.clock.advance(30)
        first.store.add(Refuse(UnavailableError("cut off")))
        for _ in range(300):
            await house.clock.advance(0.1)
            assert not (first.controller.leading and second.controller.leading)
        assert second.controller.leading
        first.store.clear()
        await house.clock.advance(30)
        assert second.controller.leading and not first.controller.leading, "it waits its turn"


@virtual_time
async def test_one_whose_lease_is_anothers_stops_when_it_sees_that() -> None:
    house = House()
    async with house.controlled("first", "second") as (first, second):
        await house.clock.advance(3)
        await house.delete(lease_ref(HOME, LEADER_LEASE))
        await house.clock.advance(RENEW_SECONDS + 0.1)
        assert second.controller.leading and not first.controller.leading


@virtual_time
async def test_a_server_that_never_answers_is_asked_again() -> None:
    house = House()
    async with house.controlled("first") as (first,):
        ours = lease_ref(HOME, LEADER_LEASE)
        first.store.add(Slow(seconds=3600), lambda call: call.method == "get" and call.ref == ours, nth=2)
        await house.clock.advance(3 * DEADLINE_SECONDS)
        assert first.controller.leading


@virtual_time
async def test_one_that_led_and_leads_again_begins_with_a_resync() -> None:
    house = House()
    async with house.controlled("first") as (first,):
        await house.asking()
        await house.clock.advance(30)
        first.gate.shut = True  # whatever happens meanwhile, no event will tell it
        first.store.add(Refuse(UnavailableError("cut off")))
        await house.clock.advance(30)
        assert not leads(first)
        await house.approve()
        first.store.clear()
        await house.clock.advance(10)
        assert leads(first) and await house.phase() == "Pending"


@virtual_time
async def test_the_end_of_a_controller_leaves_nothing_running() -> None:
    house = House()
    before = asyncio.all_tasks()
    async with house.controlled("first") as (first,):
        await house.asking()
        await house.clock.advance(10)
        await first.ended()
    await house.clock.advance(1)
    assert asyncio.all_tasks() == before


@virtual_time
async def test_the_end_of_a_process_does_not_wait_for_a_server_that_is_silent() -> None:
    house = House()
    async with house.controlled() as (seat,):
        seat.store.add(Slow(seconds=1e6), lambda call: call.ref == lease_ref(HOME, LEADER_LEASE))
        began = house.clock.boot()
        ending = asyncio.ensure_future(seat.ended())
        await house.clock.advance(GIVE_UP_SECONDS + 0.5)
        assert ending.done() and house.clock.boot() - began <= GIVE_UP_SECONDS + 0.5
