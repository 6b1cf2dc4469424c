"""Runtimes are read once, made once and shared; whoever needs one waits for its own Secrets only. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from aura_operator.agent.models.client import ModelClient
from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.specs import ToolCall
from aura_operator.api.agent import AgentSpec
from aura_operator.core.limits import Limits
from aura_operator.errors import ConfigurationError, ForbiddenError, RefusedError, UnavailableError
from aura_operator.store.resources import REVISIONS, SECRETS, Ref, new
from aura_operator.testing.clock import FakeClock, virtual_time
from aura_operator.testing.faulty import Call, FaultyStore, Predicate, Refuse, Slow, calls
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.memory_tools import MemoryTools
from aura_operator.worker.runtime.agent_runtime import AgentRuntime, Secrets
from aura_operator.worker.runtime.pool import IDLE_KEPT, LINGER_SECONDS, SWEEP_SECONDS, RuntimePool
from aura_operator.worker.runtime.revision import READ_SECONDS, REFUSED_SECONDS

NAMESPACE = "n"


class Tools(MemoryTools):
    """No tools, whose closing can be watched, and may take long."""

    def __init__(self, close_seconds: float) -> None:
        async def perform(call: ToolCall) -> str:
            return ""

        super().__init__((), perform)
        self._close_seconds = close_seconds
        self.closed = False

    async def aclose(self) -> None:
        await asyncio.sleep(self._close_seconds)
        self.closed = True


class Place:
    """A namespace with revisions and Secrets, and a pool over it that counts what it makes."""

    def __init__(self, *, close_seconds: float = 0.0) -> None:
        self.clock = FakeClock()
        self.memory = MemoryStore(self.clock)
        self.store = FaultyStore(self.memory, self.clock)
        self.made: list[Tools] = []
        self.keys: list[str] = []
        self._close_seconds = close_seconds
        self.pool = RuntimePool(self.store, self.clock, self._make)

    def _make(self, spec: AgentSpec, secrets: Secrets) -> AgentRuntime:
        ref = spec.model.api_key_secret_ref
        if ref is not None:
            self.keys.append(secrets[ref.name][ref.key])
        if spec.system_prompt == "bad":
            raise ConfigurationError("no such model")
        self.made.append(Tools(self._close_seconds))
        return AgentRuntime(
            spec=spec,
            model=ModelClient(ModelSettings(name="scripted:none")),
            toolbox=self.made[-1],
            rules=(),
            limits=Limits(),
            server_timeouts={},
        )

    async def revision(self, name: str, secret: str | None = None, *, prompt: str = "") -> None:
        model: dict[str, Any] = {"name": "scripted:none"}
        if secret is not None:
            model["apiKeySecretRef"] = {"name": secret, "key": "k"}
            await self.memory.create(SECRETS, new(SECRETS, NAMESPACE, secret, data={"k": "b25l"}))
        spec = {"model": model, "systemPrompt": prompt}
        await self.memory.create(REVISIONS, new(REVISIONS, NAMESPACE, name, data={"spec": spec}, revision=1))

    async def used(self, name: str) -> AgentRuntime:
        """Uses a runtime for no time at all."""
        async with self.pool.use(NAMESPACE, name) as runtime:
            return runtime

    def reads(self, name: str) -> int:
        return sum(call.method == "get" and call.ref is not None and call.ref.name == name for call in self.store.log)


def of(name: str) -> Predicate:
    def matches(call: Call) -> bool:
        return call.method == "get" and call.ref is not None and call.ref.name == name

    return matches


def secret(name: str) -> Ref:
    return Ref(resource=SECRETS, namespace=NAMESPACE, name=name)


async def seconds(clock: FakeClock, work: Awaitable[object]) -> float:
    begun = clock.boot()
    await work
    return clock.boot() - begun


@virtual_time
async def test_twenty_tasks_of_one_revision_read_and_make_it_once_and_each_has_it() -> None:
    place = Place()
    await place.revision("r", "s")
    place.store.add(Slow(seconds=1.0), of("s"))
    async with place.pool:
        runtimes = await asyncio.gather(*(place.used("r") for _ in range(20)))
    assert len(place.made) == 1 and len({id(runtime) for runtime in runtimes}) == 1
    assert (place.reads("r"), place.reads("s")) == (1, 1)


@virtual_time
async def test_a_secret_that_is_refused_holds_up_nobody_else_and_the_error_names_it_and_quotes_the_server() -> None:
    place = Place()
    await place.revision("bad", "locked")
    await place.revision("good", "open")
    place.store.add(Refuse(ForbiddenError('secrets "locked" is forbidden')), of("locked"))
    async with place.pool:
        refused = asyncio.create_task(place.used("bad"))
        await asyncio.sleep(0)
        assert await seconds(place.clock, place.used("good")) < 0.1
        with pytest.raises(RefusedError, match=r'Secret n/locked is refused.*secrets "locked" is forbidden'):
            await refused
        assert REFUSED_SECONDS <= place.clock.boot() - 1000.0 < REFUSED_SECONDS + 3


@virtual_time
async def test_a_server_that_never_answers_is_given_up_by_the_deadline() -> None:
    place = Place()
    await place.revision("r", "s")
    place.store.add(Slow(seconds=1e6), of("s"))
    async with place.pool:
        begun = place.clock.boot()
        with pytest.raises(UnavailableError, match="Secret n/s can't be read, for 20 s"):
            await place.used("r")
        assert place.clock.boot() - begun == READ_SECONDS


@virtual_time
async def test_a_failure_is_not_kept() -> None:
    place = Place()
    await place.revision("r", "s")
    place.store.add(Refuse(ForbiddenError("no")), of("s"))
    async with place.pool:
        with pytest.raises(RefusedError):
            await place.used("r")
        place.store.clear()
        assert (await place.used("r")).spec.model.name == "scripted:none"


@virtual_time
async def test_a_spec_that_makes_no_runtime_fails_all_who_wait_and_is_tried_anew_by_the_next() -> None:
    place = Place()
    await place.revision("r", "s", prompt="bad")
    async with place.pool:
        for _ in range(2):
            failed = await asyncio.gather(*(place.used("r") for _ in range(3)), return_exceptions=True)
            assert all(isinstance(error, ConfigurationError) for error in failed)
        assert place.reads("s") == 2


@virtual_time
async def test_a_secret_that_is_missing_is_named_with_the_remedy() -> None:
    place = Place()
    await place.revision("r", "s")
    await place.memory.delete(secret("s"), uid=(await place.memory.get(secret("s")))["metadata"]["uid"])
    async with place.pool:
        with pytest.raises(ConfigurationError, match="Secret n/s, which the agent names, doesn't exist; create it"):
            await place.used("r")


@virtual_time
async def test_one_who_loses_patience_does_not_take_the_runtime_from_the_others() -> None:
    place = Place()
    await place.revision("r", "s")
    place.store.add(Slow(seconds=5.0), of("s"))
    async with place.pool:
        first, second = asyncio.create_task(place.used("r")), asyncio.create_task(place.used("r"))
        await asyncio.sleep(1.0)
        first.cancel()
        assert (await second).spec is not None
        assert first.cancelled() and place.reads("s") == 1


@virtual_time
async def test_a_secret_that_changed_makes_another_runtime_beside_the_one_in_use() -> None:
    place = Place()
    await place.revision("r", "s")
    async with place.pool, AsyncExitStack() as held:
        before = await held.enter_async_context(place.pool.use(NAMESPACE, "r"))
        manifest = await place.memory.get(secret("s"))
        await place.memory.delete(secret("s"), uid=manifest["metadata"]["uid"])
        await place.memory.create(SECRETS, new(SECRETS, NAMESPACE, "s", data={"k": "dHdv"}))
        after = await held.enter_async_context(place.pool.use(NAMESPACE, "r"))
        assert before is not after and place.keys == ["one", "two"]
        assert not place.made[0].closed


# Idle ones


@virtual_time
async def test_a_runtime_is_kept_for_a_while_after_its_last_task_and_then_closed() -> None:
    place = Place()
    await place.revision("r")
    async with place.pool:
        first = await place.used("r")
        await asyncio.sleep(LINGER_SECONDS - 1)
        assert await place.used("r") is first
        await asyncio.sleep(LINGER_SECONDS + SWEEP_SECONDS)
        assert place.made[0].closed
        assert await place.used("r") is not first


@virtual_time
async def test_one_that_is_in_use_stays_open_however_long() -> None:
    place = Place()
    await place.revision("r")
    async with place.pool, place.pool.use(NAMESPACE, "r"):
        await asyncio.sleep(10 * LINGER_SECONDS)
        assert not place.made[0].closed


@virtual_time
async def test_idle_ones_are_closed_also_while_a_read_waits_and_a_slow_close_holds_up_nobody() -> None:
    place = Place(close_seconds=10.0)
    await place.revision("old")
    await place.revision("waits", "s")
    await place.revision("new")
    async with place.pool:
        await place.used("old")
        await asyncio.sleep(LINGER_SECONDS - 1)
        place.store.add(Slow(seconds=1e6), of("s"))
        waiting = asyncio.create_task(place.used("waits"))
        await asyncio.sleep(2.0)
        # From here on the old one is due; asking for another puts it out, and its end takes ten seconds.
        assert await seconds(place.clock, place.used("new")) < 0.1
        await asyncio.sleep(12.0)
        assert place.made[0].closed and not waiting.done()
        waiting.cancel()


@virtual_time
async def test_no_more_than_a_fixed_number_of_idle_ones_is_kept_and_the_oldest_goes_first() -> None:
    place = Place()
    for number in range(IDLE_KEPT + 1):
        await place.revision(f"r{number}")
    async with place.pool:
        for number in range(IDLE_KEPT + 1):
            await place.used(f"r{number}")
        await asyncio.sleep(0.1)
        assert [number for number, tools in enumerate(place.made) if tools.closed] == [0]


@virtual_time
async def test_at_the_end_everything_is_closed_side_by_side_and_reads_are_given_up() -> None:
    place = Place(close_seconds=10.0)
    for name in ("a", "b", "used"):
        await place.revision(name)
    await place.revision("waits", "s")
    place.store.add(Slow(seconds=1e6), calls("get", SECRETS))
    async with AsyncExitStack() as held:
        async with place.pool:
            await place.used("a")
            await place.used("b")
            await held.enter_async_context(place.pool.use(NAMESPACE, "used"))
            waiting = asyncio.create_task(place.used("waits"))
            await asyncio.sleep(1.0)
            begun = place.clock.boot()
        assert all(tools.closed for tools in place.made) and len(place.made) == 3
        assert place.clock.boot() - begun < 11.0
        await asyncio.wait({waiting})
        assert waiting.cancelled()
