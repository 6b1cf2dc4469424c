"""The demo's processes: `aura` and the tool server, in the background, each recorded so that `down` finds it.

Owns starting, killing, ending and their logs. What they are good for is the incident's.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hack import process_log
from hack.cluster import process, tools
from hack.cluster.ports import free_ports
from hack.demo.errors import DemoError
from hack.demo.place import Place
from hack.install import NAMESPACE

READY_SECONDS = 30.0
END_SECONDS = 5.0
POLL_SECONDS = 0.02
TOOL_SERVER_PORT = 28190
TOOL_CALL = '"mcp tool call" mcp.tool_call.tool_name="{tool}"'
"""How the tool server logs, at level 5, each call that has reached it; before it does anything about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One life of a process. A container that is restarted keeps its name and Pod UID and has a new life."""

    name: str
    pod_uid: str
    log: Path
    identity: process.ProcessId

    @property
    def pid(self) -> int:
        return self.identity.pid

    def kill9(self) -> None:
        process.kill(self.identity)

    def events(self) -> list[dict[str, object]]:
        """The lines of its log that are JSON."""
        return process_log.events(self.log)


class Processes:
    """Starts processes for one namespace; knows which of them are alive."""

    def __init__(self, place: Place, namespace: str, kubeconfigs: dict[str, Path]) -> None:
        self._place = place
        self._namespace = namespace
        self._kubeconfigs = kubeconfigs
        self._lives: dict[str, int] = {}

    def start(self, verb: str, name: str, *options: str, pod_uid: str | None = None) -> Life:
        """Starts `aura VERB`; with the `pod_uid` of an earlier life it is the same container, restarted."""
        uid = pod_uid or str(uuid.uuid4())
        command = [
            sys.executable, "-m", "aura_operator.cli", verb,
            "--kubeconfig", str(self._kubeconfigs[verb]),
            "--namespace", self._namespace, "--operator-namespace", NAMESPACE,
            "--name", name, "--pod-uid", uid, "--probe-port", "0", *options,
        ]  # fmt: skip
        return self._run(command, name, uid)

    def again(self, life: Life, verb: str, *options: str) -> Life:
        """The next life of the same container."""
        return self.start(verb, life.name, *options, pod_uid=life.pod_uid)

    def tool_server(self, kubeconfig: Path) -> tuple[Life, str]:
        """The MCP server for Kubernetes on the loopback interface, and its URL."""
        port = TOOL_SERVER_PORT if _is_free(TOOL_SERVER_PORT) else free_ports(1)[0]
        command = [
            str(tools.kubernetes_mcp_server()), "--port", str(port), "--bind-address", "127.0.0.1",
            "--kubeconfig", str(kubeconfig), "--cluster-provider", "kubeconfig", "--disable-multi-cluster",
            "--toolsets", "core", "--log-level", "5",
        ]  # fmt: skip
        life = self._run(command, "tool-server", "")
        _await(life, lambda: process_log.answers(f"http://127.0.0.1:{port}/healthz"), "answer")
        return life, f"http://127.0.0.1:{port}/mcp"

    def await_ready(self, lives: Iterable[Life]) -> None:
        for life in lives:
            _await(life, lambda life=life: _ready(life), "be ready")  # type: ignore[misc]

    def _run(self, command: list[str], name: str, pod_uid: str) -> Life:
        self._lives[name] = self._lives.get(name, 0) + 1
        log = self._place.logs / f"{name}-{self._lives[name]}.log"
        record = self._place.processes / f"{name}.json"
        identity = process.start(command, cwd=self._place.folder, log=log, record=record)
        return Life(name=name, pod_uid=pod_uid, log=log, identity=identity)


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


def tool_calls(server: Life, tool: str) -> int:
    """How often the tool server says that it was called: the witness of what happened how often."""
    return server.log.read_text().count(TOOL_CALL.format(tool=tool))


def _ready(life: Life) -> bool:
    if not process_log.says_ready(life.log):
        return False
    events = life.events()
    is_controller = any(event.get("event") == "controller started" for event in events)
    return not is_controller or any(event.get("event") == "leading" for event in events)


def _await(life: Life, holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not holds():
        if not life.identity.alive() or time.monotonic() > deadline:
            tail = "\n".join(life.log.read_text(errors="replace").splitlines()[-8:])
            state = "did not" if life.identity.alive() else "ended; it should"
            raise DemoError(f"{life.name} {state} {what} within {READY_SECONDS:.0f} s. Its log, {life.log}:\n{tail}")
        time.sleep(POLL_SECONDS)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
