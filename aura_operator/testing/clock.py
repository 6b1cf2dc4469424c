"""Time that passes only when everybody waits: an event loop whose clock jumps, and a Clock that reads it.

Owns virtual time. Not for tests that talk to a real server: there time passes by itself.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import wraps
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

from aura_operator.core.instants import BootSeconds, UnixSeconds

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START = 1_800_000_000.0  # Unix seconds
STALLED_SECONDS = 10.0


class StalledError(Exception):
    """Everybody waits, and nothing is left that could wake anybody."""


class _JumpingSelector(selectors.DefaultSelector):
    """Instead of waiting for a timer it says how long it would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.jump: Callable[[float], None] = lambda seconds: None
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.threads:
            return super().select(timeout)  # a thread's work takes real time
        if timeout is None:
            ready = super().select(STALLED_SECONDS)
            if not ready:
                raise StalledError("every task waits for another, and no timer is set")
            return ready
        self.jump(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time stands still while there is work, and jumps to the next timer when there is none.

    So `asyncio.sleep`, `asyncio.timeout` and a FakeClock agree, hours take no time, and runs are repeatable.
    """

    def __init__(self) -> None:
        self._virtual_time = 0.0
        self._jumping = _JumpingSelector()
        self._jumping.jump = self.jump
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._virtual_time

    def jump(self, seconds: float) -> None:
        """Moves time without letting anybody run: what a stopped process finds when it goes on."""
        self._virtual_time += seconds

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self._jumping.threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self._jumping.threads -= 1


class FakeClock:
    """The Clock of a VirtualLoop. `now` begins at `start`, so that two machines can differ; `boot` at `boot_start`."""

    def __init__(self, *, start: float = START, boot_start: float = 1000.0) -> None:
        self._start = start
        self._boot_start = boot_start

    def now(self) -> UnixSeconds:
        return UnixSeconds(self._start + _loop_time())

    def boot(self) -> BootSeconds:
        return BootSeconds(self._boot_start + _loop_time())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    async def advance(self, seconds: float) -> None:
        """Lets that much time pass; whoever is due meanwhile runs, in order."""
        await asyncio.sleep(seconds)

    def suspend(self, seconds: float) -> None:
        """Lets time pass while this process stands still (SIGSTOP, a suspended machine)."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.jump(seconds)


def _loop_time() -> float:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0  # before the loop runs


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on a loop of its own with virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """`@virtual_time` makes a synchronous test of an asynchronous one; it runs with virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_virtual(test(*args, **kwargs))

    return run
