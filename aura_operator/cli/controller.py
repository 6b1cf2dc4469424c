"""`aura controller`: one controller process, until SIGTERM. Owns the process's signals."""

from __future__ import annotations

import asyncio
import signal
import socket
import uuid
from functools import partial
from typing import TYPE_CHECKING

import click
import structlog

from aura_operator.cli import memory, options
from aura_operator.errors import AuraError
from aura_operator.telemetry import logs

if TYPE_CHECKING:
    from aura_operator.controller.controller import ControllerSettings

log = structlog.get_logger()


@click.command()
@options.process
@click.option("--name", envvar="POD_NAME", default=socket.gethostname, help="Name of the controller: its Pod's name.")
@click.option("--pod-uid", envvar="POD_UID", default=None, help="UID of its Pod; a random one outside a cluster.")
def controller(
    kubeconfig: str | None,
    operator_namespace: str,
    namespaces: tuple[str, ...],
    probe_host: str,
    probe_port: int,
    log_level: str,
    log_format: str,
    name: str,
    pod_uid: str | None,
) -> None:
    """Repair, wake and settle until SIGTERM; one of several leads."""
    memory.be_frugal()
    from aura_operator.controller.controller import ControllerSettings

    logs.configure(log_level, json_lines=log_format == "json")
    settings = ControllerSettings(
        name=f"{name}-{uuid.uuid4().hex[:8]}",
        pod_uid=pod_uid or str(uuid.uuid4()),
        operator_namespace=operator_namespace,
        namespaces=namespaces,
    )
    try:
        asyncio.run(_run(settings, kubeconfig, probe_host, probe_port))
    except* AuraError as group:
        raise click.ClickException(str(group.exceptions[0])) from group


async def _run(settings: ControllerSettings, kubeconfig: str | None, probe_host: str, probe_port: int) -> None:
    from aura_operator.clock import SystemClock
    from aura_operator.controller.controller import Controller
    from aura_operator.controller.watching import KopfEvents
    from aura_operator.store.kube import KubeStore
    from aura_operator.telemetry import probes

    stop = asyncio.Event()
    store = await KubeStore.connect(kubeconfig)
    try:
        events = KopfEvents(store.configuration, settings.namespaces, on_start=partial(_take_signals, stop))
        running = Controller(settings, store, SystemClock(), events)
        async with probes.serve(
            probe_host,
            probe_port,
            healthy=lambda: running.unhealthy() is None,
            ready=lambda: running.not_ready() is None,
        ) as port:
            log.info("probes", port=port)
            _take_signals(stop)
            await running.run(stop)
    finally:
        await store.aclose()


def _take_signals(stop: asyncio.Event) -> None:
    """The process's end is ours, also after kopf has started, which takes SIGTERM and SIGINT for itself."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
