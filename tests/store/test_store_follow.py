"""Following a selection through whatever a server does to a watch, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from aura_operator.errors import OutcomeUnknownError, UnavailableError, WatchExpiredError
from aura_operator.store.follow import Change, follow
from aura_operator.store.interface import Selection, WatchEvent, WatchKind, add
from aura_operator.store.resources import TASKS, Manifest, Ref, new
from aura_operator.store.view import task_ref
from aura_operator.testing.clock import FakeClock, virtual_time
from aura_operator.testing.faulty import Call, FaultyStore, Refuse, calls
from aura_operator.testing.memory import MemoryStore

PENDING = Selection(resource=TASKS, namespace="n", fields="status.phase=Pending")
ALL = Selection(resource=TASKS)
MINUTE = 60.0


class Follower:
    """What follow() has told so far, and a picture made of nothing but that, by name as its users keep it."""

    def __init__(self) -> None:
        self.told: list[tuple[Change, str]] = []
        self.picture: dict[str, str] = {}
        self.synced = 0

    async def run(self, store: FaultyStore, selection: Selection, clock: FakeClock) -> None:
        async for seen in follow(store, selection, clock):
            if seen.change is Change.SYNCED:
                self.synced += 1
                continue
            metadata = seen.object["metadata"]
            self.told.append((seen.change, metadata["name"]))
            if seen.change is Change.SET:
                self.picture[metadata["name"]] = metadata["uid"]
            else:
                self.picture.pop(metadata["name"], None)


@asynccontextmanager
async def following(store: FaultyStore, selection: Selection, clock: FakeClock) -> AsyncIterator[Follower]:
    follower = Follower()
    async with asyncio.TaskGroup() as group:
        work = group.create_task(follower.run(store, selection, clock))
        await clock.advance(1)
        yield follower
        work.cancel()


def stores(clock: FakeClock) -> tuple[MemoryStore, FaultyStore]:
    memory = MemoryStore(clock)
    return memory, FaultyStore(memory, clock)


async def create(memory: MemoryStore, name: str) -> Manifest:
    spec = {"agentRef": {"name": "sre"}, "input": "go"}
    return await memory.create(TASKS, new(TASKS, "n", name, spec=spec))


async def delete(memory: MemoryStore, name: str) -> None:
    ref = task_ref("n", name)
    await memory.delete(ref, uid=(await memory.get(ref))["metadata"]["uid"])


async def set_phase(memory: MemoryStore, ref: Ref, phase: str) -> None:
    await memory.patch(ref, [add("/status/phase", phase)], subresource="status")


def requests(store: FaultyStore, *methods: str) -> int:
    return sum(call.method in methods for call in store.log)


@virtual_time
async def test_what_is_there_and_what_changes_is_told() -> None:
    clock = FakeClock()
    memory, store = stores(clock)
    await create(memory, "before")
    async with following(store, PENDING, clock) as follower:
        assert follower.told == [(Change.SET, "before")]
        await create(memory, "after")
        await set_phase(memory, task_ref("n", "before"), "Waiting")
        await clock.advance(1)
        await set_phase(memory, task_ref("n", "before"), "Pending")
        await delete(memory, "after")
        await clock.advance(1)
    assert follower.told[1:] == [
        (Change.SET, "after"),
        (Change.GONE, "before"),  # left the selection
        (Change.SET, "before"),
        (Change.GONE, "after"),
    ]
    assert follower.synced == 1


@pytest.mark.behaviour(10)
@virtual_time
async def test_a_closed_watch_goes_on_where_it_was() -> None:
    clock = FakeClock()
    memory, store = stores(clock)
    async with following(store, ALL, clock) as follower:
        for number in range(5):
            await clock.advance(5 * MINUTE)
            memory.cut_watches()
            await create(memory, f"t{number}")
            before = clock.boot()
            while f"t{number}" not in follower.picture:
                await asyncio.sleep(0.001)
            assert clock.boot() - before < 0.01, "an ordinary close costs no waiting"
    assert follower.synced == 1 and requests(store, "list") == 1, "nothing was listed anew"
    assert [name for _, name in follower.told] == ["t0", "t1", "t2", "t3", "t4"]


@pytest.mark.behaviour(10)
@virtual_time
async def test_an_expired_version_is_listed_anew_and_nothing_is_missed() -> None:
    clock = FakeClock()
    memory, store = stores(clock)
    for name in ("stays", "goes", "replaced"):
        await create(memory, name)
    async with following(store, ALL, clock) as follower:
        await clock.advance(MINUTE)
        store.add(Refuse(UnavailableError("down (503)")))
        memory.cut_watches()
        await clock.advance(MINUTE)
        await delete(memory, "goes")
        await create(memory, "comes")
        await delete(memory, "replaced")
        twin = await create(memory, "replaced")
        memory.compact()
        told = len(follower.told)
        store.clear()
        await clock.advance(5)
    assert (Change.GONE, "goes") in follower.told[told:], "a DELETED that was lost in the outage is told"
    assert (Change.SET, "stays") not in follower.told[told:], "what didn't change isn't told again"
    assert follower.picture.keys() == {"stays", "comes", "replaced"}
    # Told the other way round, whoever goes by names would take the new one for gone.
    assert follower.picture["replaced"] == twin["metadata"]["uid"]


@pytest.mark.behaviour(10)
@virtual_time
async def test_lists_come_in_pages_and_begin_anew_when_a_page_expires() -> None:
    clock = FakeClock()
    memory, store = stores(clock)
    for number in range(1200):
        await create(memory, f"t{number:04}")

    async def compact_after_the_first_page(call: Call) -> None:
        if call.method == "list" and requests(store, "list") == 1:
            memory.compact()

    store.after = compact_after_the_first_page
    async with following(store, ALL, clock) as follower:
        await clock.advance(1)
        assert len(follower.picture) == 1200 == len(follower.told), "each is told once, although the list broke off"
        assert follower.synced == 1
        assert requests(store, "list") == 5, "one page, the expired one, and three more"
        await delete(memory, "t0700")
        await clock.advance(1)
        assert len(follower.picture) == 1199


@pytest.mark.behaviour(10)
@virtual_time
async def test_bookmarks_keep_a_quiet_watch_from_expiring() -> None:
    clock = FakeClock()
    memory, store = stores(clock)
    async with following(store, PENDING, clock) as follower:
        other = await create(memory, "other")
        await set_phase(memory, task_ref("n", "other"), "Waiting")
        await memory.patch(task_ref("n", "other"), [add("/spec/priority", 1)])
        memory.bookmark()
        await clock.advance(MINUTE)
        memory.compact()
        memory.cut_watches()
        await clock.advance(1)
    assert other["metadata"]["name"] == "other" and follower.synced == 1
    assert requests(store, "list") == 1


class Odd(FaultyStore):
    """Closes each watch as soon as it is open, in one of the ways that servers have."""

    way: str = "close"

    async def watch(self, selection: Selection, resource_version: str) -> AsyncIterator[WatchEvent]:
        self._call("watch", selection.resource, selection=selection)
        match self.way:
            case "close":
                return
            case "bookmark and close":
                bookmark = {"metadata": {"resourceVersion": resource_version}}
                yield WatchEvent(kind=WatchKind.BOOKMARK, object=bookmark)
            case "410":
                raise WatchExpiredError("too old")
            case "broken":
                raise OutcomeUnknownError("the stream broke")
            case _:
                raise UnavailableError("too many requests (429)", retry_after=1.0)


@pytest.mark.behaviour(10)
@pytest.mark.parametrize("way", ["close", "bookmark and close", "410", "broken", "429"])
def test_a_server_that_closes_at_once_again_and_again_is_not_hammered(way: str) -> None:
    @virtual_time
    async def run() -> None:
        clock = FakeClock()
        memory = MemoryStore(clock)
        odd = Odd(memory, clock)
        odd.way = way
        async with following(odd, ALL, clock) as follower:
            await clock.advance(MINUTE)
            asked = requests(odd, "watch")
            assert asked <= 65, f"{asked} watches in a minute"
            await create(memory, "late")
            await clock.advance(10)
            if way == "410":
                assert "late" in follower.picture, "each relist shows what is there"

    run()


@pytest.mark.behaviour(9)
@virtual_time
async def test_an_outage_is_waited_out_without_hammering() -> None:
    clock = FakeClock()
    memory, store = stores(clock)
    async with following(store, ALL, clock) as follower:
        await clock.advance(MINUTE)
        store.add(Refuse(UnavailableError("down")))
        memory.cut_watches()
        before = len(store.log)
        await clock.advance(MINUTE)
        assert len(store.log) - before < 45
        await create(memory, "meanwhile")
        store.clear()
        await clock.advance(2.1)
        assert "meanwhile" in follower.picture, "at most the longest pause after the outage"
    assert requests(store, "list") == 1


@pytest.mark.behaviour(10)
@virtual_time
async def test_a_replayed_event_is_no_news_to_those_who_compare_states() -> None:
    """A server may send ADDED for what is known; the same state told twice leaves the picture as it is."""
    clock = FakeClock()
    memory = MemoryStore(clock)
    task = await create(memory, "one")

    class Replaying(FaultyStore):
        async def watch(self, selection: Selection, resource_version: str) -> AsyncIterator[WatchEvent]:
            yield WatchEvent(kind=WatchKind.ADDED, object=task)
            yield WatchEvent(kind=WatchKind.ADDED, object=task)
            async for event in super().watch(selection, resource_version):
                yield event

    store = Replaying(memory, clock)
    async with following(store, ALL, clock) as follower:
        assert set(follower.told) == {(Change.SET, "one")}
        await delete(memory, "one")
        await clock.advance(1)
    assert follower.picture == {}


@virtual_time
async def test_only_the_selection_is_asked_for() -> None:
    clock = FakeClock()
    _, store = stores(clock)
    async with following(store, PENDING, clock):
        pass
    assert {call.selection for call in store.log} == {PENDING}
    assert [call.method for call in store.log if calls("list")(call)] == ["list"]
