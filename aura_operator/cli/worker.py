"""`aura worker`: one worker process, until SIGTERM. Owns the process's signals and exit codes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import uuid
from typing import TYPE_CHECKING

import click
import structlog

from aura_operator.cli import memory, options
from aura_operator.errors import AuraError, FencedError
from aura_operator.telemetry import logs

if TYPE_CHECKING:
    from aura_operator.worker.worker import WorkerSettings

EXIT_FENCED = 3

log = structlog.get_logger()


@click.command()
@options.process
@click.option("--name", envvar="POD_NAME", default=socket.gethostname, help="Name of the worker: its Pod's name.")
@click.option("--pod-uid", envvar="POD_UID", default=None, help="UID of its Pod; a random one outside a cluster.")
@click.option("--slots", default=8, show_default=True, help="How many tasks it runs at once.")
@click.option("--drain-seconds", default=60.0, show_default=True, help="Time for running effects after SIGTERM.")
def worker(
    kubeconfig: str | None,
    operator_namespace: str,
    namespaces: tuple[str, ...],
    probe_host: str,
    probe_port: int,
    log_level: str,
    log_format: str,
    name: str,
    pod_uid: str | None,
    slots: int,
    drain_seconds: float,
) -> None:
    """Run tasks until SIGTERM; then hand them over."""
    memory.be_frugal()
    from aura_operator.worker.worker import WorkerSettings

    logs.configure(log_level, json_lines=log_format == "json")
    settings = WorkerSettings(
        name=name,
        pod_uid=pod_uid or str(uuid.uuid4()),
        operator_namespace=operator_namespace,
        namespaces=namespaces,
        slots=slots,
        drain_seconds=drain_seconds,
        pod_owner=_pod_owner(name, pod_uid),
    )
    try:
        asyncio.run(_run(settings, kubeconfig, probe_host, probe_port))
    except* FencedError as group:
        # Others may have this worker's tasks: nothing of it may go on, so nothing is cleaned up either.
        log.error("fenced; exiting", error=str(group.exceptions[0]))
        sys.stderr.flush()
        os._exit(EXIT_FENCED)
    except* AuraError as group:
        raise click.ClickException(str(group.exceptions[0])) from group


def _pod_owner(name: str, pod_uid: str | None) -> dict[str, str] | None:
    """The Pod as the owner of the Lease, so that it goes with the Pod; only where there is one."""
    if pod_uid is None or "KUBERNETES_SERVICE_HOST" not in os.environ:
        return None
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod_uid}


async def _run(settings: WorkerSettings, kubeconfig: str | None, probe_host: str, probe_port: int) -> None:
    from aura_operator.agent.models import preload
    from aura_operator.clock import SystemClock
    from aura_operator.store.kube import KubeStore
    from aura_operator.telemetry import probes
    from aura_operator.worker import preflight
    from aura_operator.worker.runtime_pool import RuntimePool
    from aura_operator.worker.worker import Worker

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    store = await KubeStore.connect(kubeconfig)
    try:
        clock = SystemClock()
        async with RuntimePool(store, clock) as pool:
            worker = Worker(
                settings,
                store,
                clock,
                pool,
                uuid.uuid4().hex[:12],
                preflight=lambda: preflight.passed(store, clock, settings.home),
                warm_up=lambda: asyncio.to_thread(preload.load_usual_providers),
            )
            async with probes.serve(probe_host, probe_port, healthy=lambda: True, ready=lambda: worker.ready) as port:
                log.info("probes", port=port)
                await preload.load()
                await worker.run(stop)
    finally:
        await store.aclose()
