"""An approval whose end can't be written: what that costs, and that nothing is lost once it can be."""

from __future__ import annotations

import pytest

from aura_operator.errors import ForbiddenError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.resources import APPROVALS
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Refuse, calls
from tests.controller.house import House


@pytest.mark.behaviour(16)
@virtual_time
async def test_an_approval_that_can_t_be_settled_wakes_its_task_once_and_again_when_it_is() -> None:
    house = House()
    async with house.controlled() as (seat,):
        (wait,) = (await house.asking()).waiting_for
        await house.clock.advance(1)
        seat.store.add(Refuse(ForbiddenError("rbac says no")), calls("patch", APPROVALS))
        await house.approve()
        await house.clock.advance(1)
        assert await house.phase() == "Pending", "people don't wait for that write"
        epoch = (await house.parked_again("one", wait)).epoch
        await house.clock.advance(120)
        status = await house.status()
        assert (status["phase"], status["epoch"]) == ("Waiting", epoch), "it was woken for it in vain already"
        seat.store.clear()
        await house.clock.advance(40)
        assert (await house.memory.get(approval_ref("n", "one-1")))["status"]["phase"] == "Approved"
        assert await house.phase() == "Pending"
