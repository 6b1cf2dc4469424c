"""The leader's Lease as somebody's hands left it: a controller takes it over and leads."""

from __future__ import annotations

from typing import Any

import pytest

from aura_operator.controller.controller import LEADER_LEASE
from aura_operator.store.resources import LEASES, new
from aura_operator.testing.clock import virtual_time
from tests.controller.house import House, Seat
from tests.worker.world import HOME


@pytest.mark.parametrize("spec", [{}, {"leaseDurationSeconds": 15}, {"holderIdentity": "x"}])
@virtual_time
async def test_a_leader_lease_without_its_fields_is_taken_over(spec: dict[str, Any]) -> None:
    house = House()
    await house.memory.create(LEASES, new(LEASES, HOME, LEADER_LEASE, spec=spec))
    seat = Seat(house, "c", "pod-c")
    seat.start()
    await house.clock.advance(40)
    assert seat.controller.leading
    await seat.kill()
