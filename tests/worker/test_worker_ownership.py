"""Tasks that say they are a worker's and aren't running, and tasks that run and are another's. In virtual time."""

from __future__ import annotations

import pytest

from aura_operator.core.entries import Proof
from aura_operator.core.lifecycle import Phase
from aura_operator.core.ownership import Owner
from aura_operator.errors import ForbiddenError, OutcomeUnknownError
from aura_operator.store.commit import commit
from aura_operator.store.events import EventRecorder
from aura_operator.store.interface import add
from aura_operator.store.leases import lease_ref
from aura_operator.store.resources import Ref
from aura_operator.store.task_repairs import orphan
from aura_operator.store.view import TaskView, task_ref
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.faulty import Call, Predicate, Refuse, Slow
from aura_operator.worker.claiming import claim_entry, claimed
from aura_operator.worker.lease import WorkerLease
from aura_operator.worker.runtime.revision import pin
from aura_operator.worker.task.live import WorkerContext
from tests.worker.world import HOME, NAMESPACE, ONE, Life, World, one_worker

TWO = task_ref(NAMESPACE, "two")
ELSEWHERE = task_ref("elsewhere", "three")
ITSELF = Owner(worker="w", incarnation="pod-w.1")
GHOST = Owner(worker="ghost", incarnation="pod-ghost.1")


def reads_of(ref: Ref) -> Predicate:
    def matches(call: Call) -> bool:
        return call.method == "get" and call.ref == ref

    return matches


async def claimed_by(world: World, owner: Owner, task: TaskView) -> None:
    """A worker's first write, by hand: nobody runs the task afterwards."""
    lease = WorkerLease(
        world.memory,
        world.clock,
        lease_ref(HOME, owner.worker),
        incarnation=owner.incarnation,
        pod_uid="any",
        pod_owner=None,
        free_slots=lambda: 1,
    )
    events = EventRecorder(world.memory, world.clock, component="worker", instance=owner.worker)
    context = WorkerContext(store=world.memory, clock=world.clock, lease=lease, owner=owner, events=events)
    revision = await pin(world.memory, task.ref.namespace, task.agent, world.clock)
    assert await claimed(context, task, claim_entry(context, task, revision)) is not None


async def taken_away(world: World, ref: Ref = ONE) -> None:
    """What the controller does with the task of a worker that it takes for dead."""
    write = orphan(await world.task(ref), Proof.LEASE_EXPIRED, now=world.clock.now(), fields={})
    await commit(world.memory, write, world.clock)


def in_slots(life: Life) -> int:
    return len(life.worker.slots)


# Said to be ours


@virtual_time
async def test_a_task_that_says_it_is_ours_and_is_not_run_is_handed_back_and_run() -> None:
    """As after a claim whose answer came to nobody. All slots are taken, so the worker itself doesn't try for it."""
    async with one_worker([("s__read",)], slots=1, tool_seconds=30.0) as (world, _):
        await world.create(TWO)
        await world.until(TWO, Phase.RUNNING)
        await claimed_by(world, ITSELF, await world.create())
        began = world.clock.boot()
        status = await world.until(ONE, Phase.PENDING)
        assert world.clock.boot() - began < 1 and status["summary"] == "handed back; wants a worker"
        status = await world.ended()
        assert (status["phase"], status["epoch"], status["recoveries"]) == ("Succeeded", 2, 0)


@virtual_time
async def test_a_task_of_this_workers_last_life_is_left_to_the_controller() -> None:
    async with one_worker([("s__read",)], slots=1, tool_seconds=30.0) as (world, _):
        await world.create(TWO)
        await world.until(TWO, Phase.RUNNING)
        await claimed_by(world, Owner(worker="w", incarnation="pod-w.0"), await world.create())
        status = await world.until(ONE, Phase.PENDING)
        assert (status["recoveries"], status["lastEnd"]["proof"]) == (1, "ContainerRestarted")
        assert (await world.ended())["phase"] == "Succeeded"


@virtual_time
async def test_a_journal_that_somebody_changed_under_its_owner_is_handed_back_and_found_damaged() -> None:
    async with one_worker([("s__once",)], tool_seconds=10.0) as (world, life):
        await world.create()
        await life.reached("in s__once")
        await world.memory.patch(ONE, [add("/status/journal/head", "0" * 64)], subresource="status")
        status = await world.ended()
        assert (status["phase"], status["reason"]) == ("Failed", "JournalUnreadable")
        await world.clock.sleep(0.1)
        assert in_slots(life) == 0


@virtual_time
async def test_a_task_that_can_not_be_handed_back_holds_up_no_other_and_is_in_the_end() -> None:
    async with one_worker([("s__read",)], slots=1, tool_seconds=30.0) as (world, life):
        await world.create(ELSEWHERE)
        await world.until(ELSEWHERE, Phase.RUNNING)
        life.store.add(Refuse(ForbiddenError("no")), lambda call: call.method == "patch" and call.ref == ONE)
        await claimed_by(world, ITSELF, await world.create())
        await world.clock.sleep(1)
        began = world.clock.boot()
        await world.memory.patch(ELSEWHERE, [add("/spec/desired", "Cancel")])
        assert (await world.ended(ELSEWHERE))["phase"] == "Cancelled"
        assert world.clock.boot() - began < 1, "it was heard at once"
        await world.clock.sleep(600)
        assert (await world.task()).phase is Phase.RUNNING and in_slots(life) == 0
        life.store.clear()
        assert (await world.ended())["phase"] == "Succeeded"


# Another's


@pytest.mark.behaviour(7)
@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["while nobody has it", "when another one has it"])
def test_a_task_that_was_taken_away_is_stopped_and_frees_its_slot(seconds: float) -> None:
    """The look finds it as it is right after it was taken away, or only once another worker runs it."""

    @virtual_time
    async def run() -> None:
        async with one_worker([("s__read",)], slots=1, tool_seconds=50.0) as (world, life):
            await world.create()
            await life.reached("in s__read")
            life.store.add(Slow(seconds=seconds), reads_of(ONE))
            await taken_away(world)
            await claimed_by(world, GHOST, await world.task())
            await world.clock.sleep(seconds + 1)
            assert in_slots(life) == 0 and len(world.ledger) == 1
            await world.create(ELSEWHERE)
            await world.until(ELSEWHERE, Phase.RUNNING)

    run()


@virtual_time
async def test_a_task_that_was_deleted_frees_its_slot_and_one_of_its_name_is_another() -> None:
    async with one_worker([("s__read",)], slots=1, tool_seconds=50.0) as (world, life):
        first = await world.create()
        await life.reached("in s__read")
        await world.memory.delete(ONE, uid=first.uid)
        world.tool_seconds = 1.0
        second = await world.create()
        status = await world.ended()
        assert first.uid != second.uid
        assert (status["phase"], status["epoch"]) == ("Succeeded", 1)
        assert [line.key.partition("/")[0] == status["run"] for line in world.ledger] == [False, True]


@pytest.mark.behaviour(9)
@virtual_time
async def test_as_long_as_it_can_not_tell_whose_a_task_is_it_goes_on() -> None:
    """The watch says that it is gone (its selector is told by the owner's field); the read that would show it fails."""
    async with one_worker([("s__idempotent",)], tool_seconds=30.0) as (world, life):
        await world.create()
        await life.reached("in s__idempotent")
        life.store.add(Refuse(OutcomeUnknownError("cut")), reads_of(ONE))
        await taken_away(world)
        await world.clock.sleep(5)
        assert in_slots(life) == 1
        life.store.clear()
        assert (await world.ended())["phase"] == "Succeeded"


@pytest.mark.behaviour(25)
@virtual_time
async def test_a_look_that_takes_long_keeps_no_other_task_from_hearing_its_cancel() -> None:
    async with one_worker([("s__read",)], tool_seconds=50.0) as (world, life):
        await world.create()
        await world.create(TWO)
        while len(world.ledger) < 2:
            await world.clock.sleep(0.1)
        life.store.add(Slow(seconds=100.0), reads_of(ONE))
        await taken_away(world)
        await world.clock.sleep(1)
        began = world.clock.boot()
        await world.memory.patch(TWO, [add("/spec/desired", "Cancel")])
        assert (await world.ended(TWO))["phase"] == "Cancelled"
        assert world.clock.boot() - began < 1


@pytest.mark.behaviour(7)
@pytest.mark.parametrize("seconds", [0.1, 0.3, 0.6, 1.0, 2.0, 5.0])
def test_a_task_that_is_lost_and_claimed_again_keeps_its_new_slot(seconds: float) -> None:
    """A frozen worker thaws: its task was taken away, and it claims it anew while its old run still looks around."""

    @virtual_time
    async def run() -> None:
        async with one_worker([("s__idempotent",)] * 3, tool_seconds=1.5) as (world, life):
            await world.create()
            await life.reached("in s__idempotent")
            life.store.add(
                Refuse(OutcomeUnknownError("cut")), reads_of(ONE), nth=1
            )  # whether it is lost, it can't tell
            life.store.add(Slow(seconds=seconds), reads_of(ONE))
            await taken_away(world)
            status = await world.ended()
            assert (status["phase"], status["epoch"]) == ("Succeeded", 2), "it was handed back although it ran"
            await world.clock.sleep(20)
            assert in_slots(life) == 0

    run()


@virtual_time
async def test_the_slot_of_a_task_is_free_for_it_again_once_its_last_run_has_left() -> None:
    """Woken before the last run has quite gone: it is neither run twice nor forgotten."""
    async with one_worker([("sleep",)] * 3) as (world, life):
        await world.create()
        status = await world.ended()
        assert (status["phase"], status["epoch"]) == ("Succeeded", 4)
        await world.clock.sleep(0.1)
        assert in_slots(life) == 0
