"""`aura controller`: one controller process, until SIGTERM. Owns what the controller is made of."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from aura_operator.process import Ground, ProcessOptions, process_options, run

if TYPE_CHECKING:
    from aura_operator.controller.controller import Controller


@click.command()
@process_options
def controller(told: ProcessOptions) -> None:
    """Repair, wake and settle until SIGTERM; one of several leads."""
    run(told, partial(_made, told))


@asynccontextmanager
async def _made(told: ProcessOptions, ground: Ground) -> AsyncIterator[Controller]:
    from aura_operator.controller.controller import Controller, ControllerSettings
    from aura_operator.controller.watching import KopfEvents

    settings = ControllerSettings(
        name=f"{told.name}-{uuid.uuid4().hex[:8]}",
        pod_uid=told.pod_uid,
        operator_namespace=told.operator_namespace,
        namespaces=told.namespaces,
    )
    events = KopfEvents(ground.store.configuration, told.namespaces, on_start=ground.take_signals)
    yield Controller(settings, ground.store, ground.clock, events)
