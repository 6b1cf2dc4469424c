"""One process's life: connect, make the service, serve its probes, run it, close. Owns its exit codes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import click
import structlog

from aura_operator.errors import AuraError, FencedError, first_cause
from aura_operator.process import logs, memory, signals
from aura_operator.process.options import ProcessOptions

if TYPE_CHECKING:
    from aura_operator.clock import Clock
    from aura_operator.store.kube import KubeStore

EXIT_FENCED = 3

log = structlog.get_logger()


class Service(Protocol):
    """What a process is there for."""

    def unhealthy(self) -> str | None:
        """Why only a restart would help, as a sentence, or None. An API server that is down is no reason."""
        ...

    def not_ready(self) -> str | None:
        """Why it couldn't do its part now, as a sentence; None if it could."""
        ...

    async def run(self, stop: asyncio.Event) -> None:
        """Does its part until `stop` is set, then ends orderly and soon, whatever it waits for.

        Raises FencedError, alone or in a group, when others may have taken over what it owns.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a service is built on. `take_signals` is for what takes SIGTERM and SIGINT away: it takes them back."""

    store: KubeStore
    clock: Clock
    take_signals: Callable[[], None]


Make = Callable[[Ground], AbstractAsyncContextManager[Service]]
"""Makes the service, and closes what it was made of at the end of the block. Heavy imports belong in here."""


def run(told: ProcessOptions, make: Make) -> None:
    """Runs a service until SIGTERM or SIGINT; these end the process at once until the service runs.

    Raises ClickException for what the user can mend. A service that is fenced ends the process on the spot with code 3.
    """
    signals.end_at_once()
    memory.be_frugal()
    logs.configure(told.log_level, json_lines=told.log_format == "json")
    try:
        asyncio.run(_live(told, make))
    except* FencedError as group:
        # Others may have what this process owned: nothing of it may go on, so nothing is cleaned up either.
        log.error("fenced; exiting", error=str(first_cause(group)))
        sys.stderr.flush()
        os._exit(EXIT_FENCED)
    except* AuraError as group:
        raise click.ClickException(str(first_cause(group))) from group


async def _live(told: ProcessOptions, make: Make) -> None:
    from aura_operator.clock import SystemClock
    from aura_operator.process import probes
    from aura_operator.store.kube import KubeStore

    stop = asyncio.Event()
    work = asyncio.current_task()
    if work is None:
        raise RuntimeError("a service runs in a task, as asyncio.run makes one")

    def take_signals() -> None:
        signals.stop_orderly(stop, work)

    async with AsyncExitStack() as stack:
        store = await KubeStore.connect(told.kubeconfig)
        stack.push_async_callback(store.aclose)
        service = await stack.enter_async_context(
            make(Ground(store=store, clock=SystemClock(), take_signals=take_signals))
        )
        port = await stack.enter_async_context(
            probes.serve(told.probe_host, told.probe_port, unhealthy=service.unhealthy, not_ready=service.not_ready)
        )
        log.info("probes", port=port)
        take_signals()
        try:
            await service.run(stop)
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
            log.warning("asked twice to end: not everything was handed over")
