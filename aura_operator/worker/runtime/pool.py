"""The runtimes of this worker, by revision: read, made once, shared, kept for a while after their last task.

Owns the caches and who waits for whom: a read has a deadline and is shared by those that need it at that moment,
nothing is held over a wait, and what is closed is closed by a task of the pool's own. Must not know tasks.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType

import structlog
from cachetools import LRUCache, TTLCache

from aura_operator.api.agent import AgentSpec, StreamableHttpServer
from aura_operator.auto_reset import AutoResetEvent
from aura_operator.clock import Clock
from aura_operator.errors import ConfigurationError, NotFoundError
from aura_operator.foreign import contained
from aura_operator.single_flight import SingleFlight
from aura_operator.store.commit import get_retrying
from aura_operator.store.interface import Store
from aura_operator.store.resources import SECRETS, Ref
from aura_operator.worker.runtime.agent_runtime import AgentRuntime, Build, Secrets, build
from aura_operator.worker.runtime.revision import READ_SECONDS, REFUSED_SECONDS, read_revision

LINGER_SECONDS = 300.0  # idle connections of a revision are kept for this time: parked tasks come back
IDLE_KEPT = 64
SPECS_KEPT = 256
SWEEP_SECONDS = 30.0
CLOSE_SECONDS = 30.0  # child processes and connections have shorter limits of their own

log = structlog.get_logger()

Key = tuple[str, str, str]
"""Namespace, revision, and the versions of the Secrets."""


@dataclass(slots=True, kw_only=True)
class _InUse:
    runtime: AgentRuntime
    users: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """What a runtime is made of. `version` changes when one of the Secrets does."""

    spec: AgentSpec
    secrets: Secrets
    version: str


class RuntimePool:
    """AgentRuntime by revision; used as `async with`, which closes everything at its end.

    `make` builds a runtime without waiting for anything.
    """

    def __init__(self, store: Store, clock: Clock, make: Build = build) -> None:
        self._store = store
        self._clock = clock
        self._make = make
        self._in_use: dict[Key, _InUse] = {}
        self._idle = _Idle(clock, self._discard)
        self._specs: LRUCache[tuple[str, str], AgentSpec] = LRUCache(SPECS_KEPT)
        self._reads: SingleFlight[tuple[str, str], _Contents] = SingleFlight()
        self._discarded: list[AgentRuntime] = []
        self._stirred = AutoResetEvent()
        self._sweeper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> RuntimePool:
        self._sweeper = asyncio.create_task(self._sweep(), name="runtime pool")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self._reads.cancel()
        self._idle.discard_all()
        self._discarded += [used.runtime for used in self._in_use.values()]
        self._in_use.clear()
        await asyncio.gather(*(_close(runtime) for runtime in self._discarded))
        self._discarded.clear()

    @asynccontextmanager
    async def use(self, namespace: str, revision: str) -> AsyncIterator[AgentRuntime]:
        """See RuntimeSource."""
        contents = await self._reads.do((namespace, revision), lambda: self._contents(namespace, revision))
        # From here to the count nothing waits, so that all who shared the read find what the first of them makes.
        key = (namespace, revision, contents.version)
        used = self._in_use.get(key)
        if used is None:
            with contained("making the runtime"):
                runtime = self._idle.taken(key) or self._make(contents.spec, contents.secrets)
            used = self._in_use[key] = _InUse(runtime=runtime)
        used.users += 1
        try:
            yield used.runtime
        finally:
            used.users -= 1
            if used.users == 0 and self._in_use.pop(key, None) is not None:
                self._idle[key] = used.runtime

    async def _contents(self, namespace: str, revision: str) -> _Contents:
        """The revision and its Secrets as they are now."""
        key = (namespace, revision)
        spec = self._specs.get(key)
        if spec is None:  # its name says its content, so it is read once
            spec = self._specs[key] = await read_revision(self._store, namespace, revision, self._clock)
        found = await asyncio.gather(*(self._secret(namespace, name) for name in _secrets_of(spec)))
        return _Contents(
            spec=spec,
            secrets={name: data for name, data, _ in found},
            version=",".join(version for _, _, version in found),
        )

    async def _secret(self, namespace: str, name: str) -> tuple[str, Mapping[str, str], str]:
        """The Secret's name, its data decoded, and a text that changes when it does."""
        ref = Ref(resource=SECRETS, namespace=namespace, name=name)
        try:
            found = await get_retrying(
                self._store, ref, self._clock, within_seconds=READ_SECONDS, refused_seconds=REFUSED_SECONDS
            )
        except NotFoundError as error:
            raise ConfigurationError(
                f"{ref}, which the agent names, doesn't exist; create it", reason="SecretNotFound"
            ) from error
        data = {key: base64.b64decode(value).decode(errors="replace") for key, value in found.get("data", {}).items()}
        return name, data, f"{name}@{found['metadata']['uid']}@{found['metadata']['resourceVersion']}"

    def _discard(self, runtime: AgentRuntime) -> None:
        self._discarded.append(runtime)
        self._stirred.set()

    async def _sweep(self) -> None:
        while True:
            self._idle.expire()
            while self._discarded:
                await _close(self._discarded[0])
                del self._discarded[0]  # not before: one whose closing was cut short is closed at the end
            await self._stirred.wait(SWEEP_SECONDS)


class _Idle(TTLCache[Key, AgentRuntime]):
    """Runtimes that no task uses. What is put out, for its age or for want of room, is `discard`ed, to be closed."""

    def __init__(self, clock: Clock, discard: Callable[[AgentRuntime], None]) -> None:
        super().__init__(IDLE_KEPT, LINGER_SECONDS, timer=clock.boot)
        self._put_out = discard

    def taken(self, key: Key) -> AgentRuntime | None:
        """Removes a runtime, to be used; None if there is none any more."""
        self.expire()
        with self.timer:  # time stands still, so that none expires half way
            return self.pop(key, None)

    def discard_all(self) -> None:
        while len(self):
            self.popitem()

    def expire(self, time: float | None = None) -> list[tuple[Key, AgentRuntime]]:
        expired = list(super().expire(time))
        for _, runtime in expired:
            self._put_out(runtime)
        return expired

    def popitem(self) -> tuple[Key, AgentRuntime]:
        key, runtime = super().popitem()
        self._put_out(runtime)
        return key, runtime


async def _close(runtime: AgentRuntime) -> None:
    try:
        with contained("closing"):
            async with asyncio.timeout(CLOSE_SECONDS):
                await runtime.aclose()
    except Exception as error:  # noqa: BLE001 - foreign code; one that can't be closed must not keep the others open
        log.warning("a runtime was not closed cleanly", model=runtime.spec.model.name, error=repr(error))


def _secrets_of(spec: AgentSpec) -> list[str]:
    """The names of the Secrets that a spec names, sorted."""
    servers = [server for server in spec.mcp_servers if isinstance(server, StreamableHttpServer)]
    names = {server.headers_secret_ref.name for server in servers if server.headers_secret_ref is not None}
    if spec.model.api_key_secret_ref is not None:
        names.add(spec.model.api_key_secret_ref.name)
    return sorted(names)
