"""`aura worker`: one worker process, until SIGTERM. Owns what the worker is made of and its own options."""

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
    from aura_operator.worker.worker import Worker


@click.command()
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
def worker(told: ProcessOptions, slots: int, drain_seconds: float) -> None:
    """Run tasks until SIGTERM; then hand them over."""
    run(told, partial(_made, told, slots, drain_seconds))


@asynccontextmanager
async def _made(told: ProcessOptions, slots: int, drain_seconds: float, ground: Ground) -> AsyncIterator[Worker]:
    from aura_operator.agent.models import preload
    from aura_operator.worker import preflight
    from aura_operator.worker.runtime_pool import RuntimePool
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
    async with RuntimePool(ground.store, ground.clock) as pool:
        yield Worker(
            settings,
            ground.store,
            ground.clock,
            pool,
            uuid.uuid4().hex[:12],
            preflight=partial(preflight.passed, ground.store, ground.clock, settings.home),
            warm_up=lambda: asyncio.to_thread(preload.load_usual_providers),
        )
