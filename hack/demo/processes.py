"""The demo's processes: `aura` and the tool server, in the background, each recorded so that `down` finds it.

Owns the records, ending all of them, and the tool server. Starting and killing `aura` is the rig's (hack/rig).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import process, tools
from hack.cluster.ports import free_ports
from hack.demo.errors import DemoError
from hack.demo.place import Place
from hack.demo.scene import NAMESPACE
from hack.install import NAMESPACE as OPERATOR_NAMESPACE
from hack.rig import process_log
from hack.rig.processes import Process, Processes
from hack.rig.waiting import wait_until

READY_SECONDS = 30.0
END_SECONDS = 5.0
POLL_SECONDS = 0.02
TOOL_SERVER_PORT = 28190
TOOL_CALL = '"mcp tool call" mcp.tool_call.tool_name="{tool}"'
"""How the tool server logs, at level 5, each call that has reached it; before it does anything about it."""


@dataclass(frozen=True, slots=True)
class Background:
    """A process that outlives its starter, as subprocess.Popen would show it. Its exit code is nobody's: always 0."""

    identity: process.ProcessId

    @property
    def pid(self) -> int:
        return self.identity.pid

    def send_signal(self, sig: signal.Signals, /) -> None:
        if self.identity.alive():
            os.kill(self.pid, sig)

    def kill(self) -> None:
        process.kill(self.identity)

    def wait(self, timeout: float | None = None) -> int:
        wait_until(lambda: self.poll() is not None, f"end of process {self.pid}", timeout or READY_SECONDS)
        return 0

    def poll(self) -> int | None:
        return None if self.identity.alive() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """The MCP server for Kubernetes. `log` has a line of each call."""

    process: Background
    log: Path


def background(place: Place, kubeconfigs: dict[str, Path]) -> Processes:
    """Starts `aura` processes for the demo's namespace; what it started runs on when the demo is gone."""

    def launch(arguments: Sequence[str], log: Path) -> Background:
        return _run(place, [sys.executable, "-m", "aura_operator.cli", *arguments], log)

    return Processes(
        folder=place.logs,
        namespace=NAMESPACE,
        operator_namespace=OPERATOR_NAMESPACE,
        worker_kubeconfig=kubeconfigs["worker"],
        controller_kubeconfig=kubeconfigs["controller"],
        launch=launch,
    )


def await_ready(workers: Iterable[Process], controller: Process) -> None:
    """Returns when all of them can do their part, and the controller leads."""
    for each in (*workers, controller):
        each.wait_ready()
    wait_until(lambda: controller.logged("leading"), lambda: f"leader; see {controller.log}")


def tool_server(place: Place, kubeconfig: Path) -> tuple[ToolServer, str]:
    """The MCP server for Kubernetes on the loopback interface, and its URL."""
    port = TOOL_SERVER_PORT if _is_free(TOOL_SERVER_PORT) else free_ports(1)[0]
    command = [
        str(tools.kubernetes_mcp_server()), "--port", str(port), "--bind-address", "127.0.0.1",
        "--kubeconfig", str(kubeconfig), "--cluster-provider", "kubeconfig", "--disable-multi-cluster",
        "--toolsets", "core", "--log-level", "5",
    ]  # fmt: skip
    log = place.logs / "tool-server.log"
    server = ToolServer(process=_run(place, command, log), log=log)
    wait_until(
        lambda: server.process.poll() is not None or process_log.answers(f"http://127.0.0.1:{port}/healthz"),
        lambda: f"answer of the tool server; see {log}",
        READY_SECONDS,
    )
    if server.process.poll() is not None:
        raise DemoError(f"the tool server ended. Its log, {log}:\n{log.read_text(errors='replace')[-2000:]}")
    return server, f"http://127.0.0.1:{port}/mcp"


def tool_calls(server: ToolServer, tool: str) -> int:
    """How often the tool server says that it was called: the witness of what happened how often."""
    return server.log.read_text().count(TOOL_CALL.format(tool=tool))


def end_all(place: Place) -> int:
    """Ends every recorded process, by SIGTERM first so that Leases are given back; returns how many were alive."""
    records = sorted(place.processes.glob("*.json")) if place.processes.is_dir() else []
    alive = [known for record in records if (known := process.recorded(record)) is not None and known.alive()]
    for known in alive:
        os.kill(known.pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while any(known.alive() for known in alive) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for known in alive:
        process.kill(known)
    for record in records:
        record.unlink()
    return len(alive)


def _run(place: Place, command: list[str], log: Path) -> Background:
    record = place.processes / f"{log.stem}.json"
    return Background(process.start(command, cwd=place.folder, log=log, record=record))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
