"""`aura worker`: one worker process, until SIGTERM. Owns what the worker is made of and its own options.

`worker_command` makes the same command with another runtime, for whoever brings tools or models of his own.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from aura_operator.process import Ground, ProcessOptions, process_options, run

if TYPE_CHECKING:
    from aura_operator.worker.runtime import Build
    from aura_operator.worker.worker import Worker


def worker_command(make: Build | None = None) -> click.Command:
    """`aura worker` as a command of its own: same options, signals, probes, logs and exit codes.

    `make` builds what the tasks of one agent revision run with, out of the agent's spec and the contents of its
    Secrets (`aura_operator.worker.runtime.build` where there is none). It is called once for each revision, and
    connects to nothing; see Build for what it may raise.
    """

    @click.command("worker")
    @process_options
    @click.option(
        "--slots", type=click.IntRange(min=1), default=8, show_default=True, help="How many tasks it runs at once."
    )
    @click.option(
        "--drain-seconds",
        type=click.FloatRange(min=0),
        default=60.0,
        show_default=True,
        help="Time for running effects after SIGTERM.",
    )
    def command(told: ProcessOptions, slots: int, drain_seconds: float) -> None:
        """Run tasks until SIGTERM; then hand them over."""
        run(told, partial(_made, told, slots, drain_seconds, make))

    return command


worker = worker_command()


@asynccontextmanager
async def _made(
    told: ProcessOptions, slots: int, drain_seconds: float, make: Build | None, ground: Ground
) -> AsyncIterator[Worker]:
    from aura_operator.agent.models import preload
    from aura_operator.worker import preflight
    from aura_operator.worker.runtime import build
    from aura_operator.worker.runtime.pool import RuntimePool
    from aura_operator.worker.worker import Worker, WorkerSettings

    settings = WorkerSettings(
        name=told.name,
        pod_uid=told.pod_uid,
        operator_namespace=told.operator_namespace,
        namespaces=told.namespaces,
        slots=slots,
        drain_seconds=drain_seconds,
        pod_owner=told.pod_owner,
    )
    await preload.load()
    async with RuntimePool(ground.store, ground.clock, make or build) as pool:
        yield Worker(
            settings,
            ground.store,
            ground.clock,
            pool,
            uuid.uuid4().hex[:12],
            preflight=partial(preflight.passed, ground.store, ground.clock, settings.home),
            warm_up=lambda: asyncio.to_thread(preload.load_usual_providers),
        )
