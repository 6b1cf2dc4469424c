"""The product's processes: real ones, with signals. Owns starting, killing, their readiness and their logs."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from aura_operator.errors import AuraError
from hack.rig import forkserver, process_log
from hack.rig.waiting import wait_until

READY_SECONDS = 30.0


class ProcessEndedError(AuraError):
    """A process ended that should have gone on."""

    reason = "ProcessEnded"


class Started(Protocol):
    """A process, as subprocess.Popen has it."""

    @property
    def pid(self) -> int: ...
    def send_signal(self, sig: signal.Signals, /) -> None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def poll(self) -> int | None: ...


Launch = Callable[[Sequence[str], Path], Started]
"""Starts `aura` with these arguments, its output in that file."""


def fork(arguments: Sequence[str], log: Path) -> Started:
    """In milliseconds, out of a process that has loaded everything."""
    return forkserver.fork(arguments, log)


def spawn(arguments: Sequence[str], log: Path) -> Started:
    """From nothing, as in a container: what is measured must not come out of a warm parent."""
    with log.open("wb") as output:
        return subprocess.Popen([sys.executable, "-m", "aura_operator.cli", *arguments], stdout=output, stderr=output)


@dataclass(kw_only=True)
class Process:
    """One life of an `aura` process. `log` has its JSON lines."""

    name: str
    pod_uid: str
    log: Path
    popen: Started

    @property
    def pid(self) -> int:
        return self.popen.pid

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def kill9(self) -> None:
        """kill -9, and waits until the process is gone."""
        self.popen.kill()
        self.popen.wait()

    def terminate(self, seconds: float = 30.0) -> int:
        """SIGTERM, and waits for the end; the exit code."""
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(timeout=seconds)

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    def logged(self, event: str) -> list[dict[str, object]]:
        """The log lines of one event."""
        return [line for line in self.lines() if line.get("event") == event]

    def lines(self) -> list[dict[str, object]]:
        return process_log.events(self.log)

    def wait_ready(self) -> None:
        """Returns when /readyz says so. Raises NotInTimeError, with the log, when it doesn't come to that."""
        wait_until(
            lambda: not self.running or process_log.says_ready(self.log),
            lambda: f"readiness of {self.name}:\n{self.log.read_text()}",
            READY_SECONDS,
        )
        if not self.running:
            raise ProcessEndedError(f"{self.name} ended by itself:\n{self.log.read_text()}")


@dataclass(kw_only=True)
class Processes:
    """Starts workers and controllers and ends them all. Without a `namespace` they serve all of them."""

    folder: Path
    namespace: str | None
    operator_namespace: str
    worker_kubeconfig: Path
    controller_kubeconfig: Path
    launch: Launch = fork
    started: list[Process] = field(default_factory=list)

    def worker(
        self,
        name: str | None = None,
        *,
        pod_uid: str | None = None,
        kubeconfig: Path | None = None,
        slots: int = 8,
        drain_seconds: float = 10.0,
        ready: bool = True,
    ) -> Process:
        """A worker; with the name and `pod_uid` of an earlier one it is the next life of that container."""
        options = ["--slots", str(slots), "--drain-seconds", str(drain_seconds)]
        process = self._start("worker", name, pod_uid, kubeconfig or self.worker_kubeconfig, options)
        if ready:
            process.wait_ready()
        return process

    def controller(
        self,
        name: str | None = None,
        *,
        pod_uid: str | None = None,
        kubeconfig: Path | None = None,
        ready: bool = True,
    ) -> Process:
        process = self._start("controller", name, pod_uid, kubeconfig or self.controller_kubeconfig, [])
        if ready:
            process.wait_ready()
        return process

    def end(self) -> None:
        for process in self.started:
            if process.running:
                process.signal(signal.SIGKILL)
        for process in self.started:
            process.popen.wait()

    def _start(self, verb: str, name: str | None, pod_uid: str | None, kubeconfig: Path, options: list[str]) -> Process:
        uid = pod_uid or str(uuid.uuid4())
        name = name or f"{verb}-{uid[:8]}"
        life = 1 + sum(earlier.name == name for earlier in self.started)
        log = self.folder / f"{name}-{life}.log"
        arguments = [verb, "--kubeconfig", str(kubeconfig), "--operator-namespace", self.operator_namespace]
        if self.namespace is not None:
            arguments += ["--namespace", self.namespace]
        arguments += ["--name", name, "--pod-uid", uid, "--probe-port", "0", *options]
        log.touch()
        popen = self.launch(arguments, log)
        process = Process(name=name, pod_uid=uid, log=log, popen=popen)
        self.started.append(process)
        return process
