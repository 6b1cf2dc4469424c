"""What the API server refuses, for whatever reason, costs the task that it is about, and no other; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from aura_operator.core.codec import decode, encode
from aura_operator.core.entries import Claimed
from aura_operator.core.journal import head_after
from aura_operator.core.lifecycle import Phase
from aura_operator.core.ownership import Owner, incarnation_of
from aura_operator.errors import ContentRejectedError
from aura_operator.store.interface import add
from aura_operator.store.journal_reads import read_journal
from aura_operator.store.resources import APPROVALS, EVENTS, TASKS
from aura_operator.store.task_writes import JournalDelta, claim
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Call, Refuse
from tests.worker.world import NAMESPACE, ONE, World, one_worker

TWO = task_ref(NAMESPACE, "two")


async def kinds(world: World) -> list[str]:
    """The kinds of entries of the task, in order."""
    _, lines = await read_journal(world.memory, await world.task(), world.clock)
    return [type(decode(line)).__name__ for line in lines]


def writes(*words: str) -> Callable[[Call], bool]:
    """Matches patches of tasks that say all of these words."""

    def matches(call: Call) -> bool:
        return call.method == "patch" and call.resource == TASKS and all(word in str(call.body) for word in words)

    return matches


@pytest.mark.behaviour(2, 36)
@virtual_time
async def test_a_task_whose_result_and_end_are_refused_is_gone_on_with_in_a_new_epoch() -> None:
    """Its own first claim must not be taken for the next one: then a started call would not be in doubt."""
    async with one_worker([("s__once",)]) as (world, life):
        refused = 0

        def once_each(call: Call) -> bool:
            nonlocal refused
            if refused < 2 and (writes('"k":"result"')(call) or writes('"k":"finished"')(call)):
                refused += 1
                return True
            return False

        life.store.add(Refuse(ContentRejectedError("a webhook says no")), once_each)
        await world.create()
        await world.until(ONE, Phase.SUCCEEDED, Phase.FAILED)
        task = await world.task()
        assert refused == 2 and task.epoch >= 2
        assert (await kinds(world)).count("Claimed") == task.epoch, "each epoch has its entry"
        assert world.starts("s__once") == 1


@virtual_time
async def test_a_hand_back_that_is_refused_for_its_content_ends_no_worker() -> None:
    async with one_worker([("s__read",)]) as (world, life):
        life.store.add(Refuse(ContentRejectedError("a webhook says no")), writes("handed back"))
        await world.create()
        await world.until(ONE, Phase.SUCCEEDED)
        # A task that says it is this worker's, and isn't run: a claim whose answer came to nobody.
        await world.create(TWO, desired="Pause")
        owner = Owner(worker=life.name, incarnation=incarnation_of(f"pod-{life.name}", str(life.number)))
        line = encode(Claimed(at=1.0, epoch=1, worker=owner.worker, incarnation=owner.incarnation, revision=""))
        found = await world.task(TWO)
        head = head_after(found.head, line)
        delta = JournalDelta(lines=(line,), head=head)
        write = claim(found, owner, delta, now=world.clock.now(), first={"run": "r"})
        await world.memory.patch(TWO, write.ops, subresource="status")
        await world.clock.sleep(60)
        assert life.worker.not_ready() is None, "it works on"
        await world.create(task_ref(NAMESPACE, "three"))
        await world.until(task_ref(NAMESPACE, "three"), Phase.SUCCEEDED)


@virtual_time
async def test_an_approval_is_asked_for_once_and_announced() -> None:
    async with one_worker([("s__approved",)]) as (world, life):
        world.answering = False
        await world.create()
        await world.until(ONE, Phase.WAITING)
        await world.clock.sleep(5)
        assert sum(point.startswith(f"before create {APPROVALS.plural}") for point in life.points) == 1
        assert sum(point.startswith(f"after create {EVENTS.plural}") for point in life.points) == 1


@pytest.mark.behaviour(26)
@virtual_time
async def test_a_pause_between_claim_and_run_is_heard_before_the_model_is_asked() -> None:
    async with one_worker([("s__read",)]) as (world, life):
        point = "before get controllerrevisions/sre"
        life.held[point] = asyncio.Event()
        await world.create()
        await life.reached(point)
        await world.memory.patch(ONE, [add("/spec/desired", "Pause")])
        await world.clock.sleep(0.2)
        life.held[point].set()
        await world.until(ONE, Phase.WAITING)
        assert await kinds(world) == ["Claimed", "Controlled"]
