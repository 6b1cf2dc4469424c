"""The life of a process, with real signals: before its service runs, while it runs, and for whoever won't wait."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SECONDS = 10.0
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {token: none}}]
"""
PROCESS = """\
import asyncio, contextlib, sys, time
import click
from aura_operator.errors import FencedError
from aura_operator.process import process_options, run

class Service:
    def unhealthy(self): return None
    def not_ready(self): return None
    async def run(self, stop):
        print("runs", flush=True)
        if sys.argv[-1] == "fenced":
            raise FencedError("the Lease is another's")
        await stop.wait()
        print("drains", flush=True)
        if sys.argv[-1] == "stubborn":
            await asyncio.sleep(60)

@contextlib.asynccontextmanager
async def made(ground):
    print("is made", flush=True)
    if sys.argv[-1] == "slow":
        time.sleep(60)
    yield Service()
    print("closed", flush=True)

@click.command()
@process_options
@click.argument("kind")
def command(told, kind):
    run(told, made)

command()
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    return file


class Running:
    def __init__(self, *command: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def says(self) -> str:
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().strip()

    def logs(self, event: str) -> dict[str, Any]:
        """The next line of that event."""
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            if (found := json.loads(line))["event"] == event:
                return dict(found)
        raise AssertionError(f"ended without a line of {event!r}")

    def signalled(self, number: signal.Signals) -> tuple[int, str]:
        """How it ends, with the rest of what it says."""
        self.popen.send_signal(number)
        rest, _ = self.popen.communicate(timeout=SECONDS)
        return self.popen.returncode, rest


@pytest.fixture
def started(kubeconfig: Path) -> Iterator[list[Running]]:
    running: list[Running] = []
    yield running
    for process in running:
        process.popen.kill()
        process.popen.communicate()


def service(kind: str, kubeconfig: Path, started: list[Running]) -> Running:
    started.append(Running("-c", PROCESS, "--kubeconfig", str(kubeconfig), "--probe-port", "0", kind))
    assert started[-1].says() == "is made"
    return started[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_service_runs_ends_the_process_at_once(
    number: signal.Signals, kubeconfig: Path, started: list[Running]
) -> None:
    # "slow" blocks the event loop, as an import of seconds does.
    assert service("slow", kubeconfig, started).signalled(number) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service_orderly(number: signal.Signals, kubeconfig: Path, started: list[Running]) -> None:
    process = service("ordinary", kubeconfig, started)
    assert process.says() == "runs"
    assert process.signalled(number) == (0, "drains\nclosed\n")


def test_a_second_signal_waits_for_nothing(kubeconfig: Path, started: list[Running]) -> None:
    process = service("stubborn", kubeconfig, started)
    assert process.says() == "runs"
    process.popen.send_signal(signal.SIGINT)
    assert process.says() == "drains"
    assert process.signalled(signal.SIGINT) == (0, "closed\n")


def test_whoever_is_fenced_ends_on_the_spot(kubeconfig: Path, started: list[Running]) -> None:
    process = service("fenced", kubeconfig, started)
    assert process.says() == "runs"
    rest, log = process.popen.communicate(timeout=SECONDS)
    assert (process.popen.returncode, rest) == (3, "")
    assert "the Lease is another's" in log


@pytest.mark.parametrize("command", ["worker", "controller"])
def test_a_process_that_waits_for_its_api_server_says_so_and_ends_when_asked(
    command: str, kubeconfig: Path, started: list[Running]
) -> None:
    options = ("--kubeconfig", str(kubeconfig), "--probe-port", "0", "--name", "waiting")
    process = Running("-m", "aura_operator.cli", command, *options)
    started.append(process)
    port = process.logs("probes")["port"]
    if command == "worker":
        why = process.logs("not ready to take tasks")["why"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz")
        assert refused.value.code == 503
        assert refused.value.read().decode() == f"{why}\n"
        assert "127.0.0.1" in why
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as healthy:
        assert healthy.status == 200
    code, _ = process.signalled(signal.SIGTERM)
    assert code == 0
