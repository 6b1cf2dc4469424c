"""The clock as a parameter. `now` is wall time for what others read; `boot` orders events of this machine."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from aura_operator.core.instants import BootSeconds, UnixSeconds


class Clock(Protocol):
    def now(self) -> UnixSeconds:
        """Unix seconds."""
        ...

    def boot(self) -> BootSeconds:
        """Seconds on a clock that never jumps and goes on while the machine or the process is suspended."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> UnixSeconds:
        return UnixSeconds(time.time())

    def boot(self) -> BootSeconds:
        # CLOCK_MONOTONIC stands still while a laptop or a VM is suspended; others' Leases don't.
        return BootSeconds(time.clock_gettime(time.CLOCK_BOOTTIME))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
