"""The demo as a newcomer runs it: once on a cluster of its own, once on the current one, and interrupted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster import CHECKOUT, Cluster, process, tools
from hack.kubectl import Kubectl
from hack.rig.waiting import wait_until

# The first run on a machine builds Kubernetes.
pytestmark = pytest.mark.timeout(900)

LAST_LINE = re.compile(
    r"demo: ok kill-to-next-step=\d+\.\d\ds all-killed-to-ready=\d+\.\d\ds decision-to-call=\d+\.\d{3}s "
    r"restarts=1 tool-calls=1 deciders=bob total=\d+s"
)


def demo(directory: Path, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hack.demo", "--directory", str(directory), *arguments]
    return subprocess.run(
        command, cwd=CHECKOUT, env=tools.environment(kubeconfig), capture_output=True, text=True, check=False
    )


def started_by(directory: Path) -> list[process.ProcessId]:
    """The processes of a demo on a local cluster, those of the cluster included."""
    ours = [process.recorded(record) for record in (directory / "demo" / "processes").glob("*.json")]
    cluster = Cluster("demo", directory / "clusters").processes().values()
    return [known for known in (*ours, *cluster) if known is not None]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    assert demo(tmp_path, "down").returncode == 0


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster for the demo to play on as if it were a user's."""
    cluster = Cluster("somebodys", tmp_path / "theirs")
    cluster.up()
    yield cluster
    cluster.down()


@pytest.mark.behaviour(1, 2, 15, 18)
def test_the_demo_ends_well_and_leaves_nothing_behind(directory: Path) -> None:
    played = demo(directory, "--yes")
    assert played.returncode == 0, played.stdout + played.stderr
    assert LAST_LINE.fullmatch(played.stdout.splitlines()[-1])
    assert "four eyes: you asked for this task" in played.stdout

    removed = demo(directory, "down")
    assert removed.returncode == 0, removed.stderr
    assert not any(path.is_file() for path in directory.rglob("*"))


def test_on_a_current_cluster_it_takes_away_what_it_brought_and_nothing_else(
    directory: Path, own_cluster: Cluster
) -> None:
    kubectl = Kubectl(own_cluster.kubeconfig)
    for _ in range(2):
        played = demo(directory, "--yes", "--cluster", "current", kubeconfig=own_cluster.kubeconfig)
        assert played.returncode == 0, played.stdout + played.stderr
    removed = demo(directory, "down")
    assert removed.returncode == 0, removed.stderr
    assert "keeps the CRDs" in removed.stdout
    namespaces = kubectl("get", "namespaces", "--output", "name").split()
    assert not {"namespace/aura-demo", "namespace/aura-system"} & set(namespaces)
    assert "auratasks.aura.mezmo.com" in kubectl("get", "crds", "--output", "name")


def test_it_refuses_a_namespace_that_is_somebody_elses(directory: Path, own_cluster: Cluster) -> None:
    Kubectl(own_cluster.kubeconfig)("create", "namespace", "aura-demo")
    played = demo(directory, "--yes", "--cluster", "current", kubeconfig=own_cluster.kubeconfig)
    assert played.returncode == 1
    assert "namespace aura-demo is there and is not the demo's" in played.stderr


def waiting_for_a_person(directory: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A demo that has come to where a person decides, and its output."""
    output = directory / "output"
    command = [sys.executable, "-m", "hack.demo", "--directory", str(directory)]
    with output.open("wb") as stream:
        playing = subprocess.Popen(command, cwd=CHECKOUT, stdout=stream, stderr=stream, env=tools.environment())
    wait_until(
        lambda: playing.poll() is not None or "This goes on by itself" in output.read_text(),
        lambda: f"question to a person: {output.read_text()}",
        120,
        pause_seconds=0.2,
    )
    assert playing.poll() is None, output.read_text()
    return playing, output


@pytest.mark.behaviour(21)
def test_a_person_types_what_it_shows_and_says_no(directory: Path) -> None:
    playing, output = waiting_for_a_person(directory)
    shown = next(line for line in output.read_text().splitlines() if line.startswith("  kubectl --kubeconfig"))
    typed = shown.replace('"approved":true', '"approved":false')
    subprocess.run(["bash", "-c", typed], env=tools.environment(), check=True, capture_output=True)
    assert playing.wait(timeout=60) == 0, output.read_text()
    said = output.read_text()
    assert "Denied by bob" in said
    assert "restarts=0 tool-calls=0 deciders=bob" in said.splitlines()[-1]


def test_interrupted_while_it_waits_for_a_person_it_leaves_nothing_running(directory: Path) -> None:
    playing, output = waiting_for_a_person(directory)
    started = started_by(directory)
    assert sum(known.alive() for known in started) == 4 + 3, "ours and the cluster's"
    playing.send_signal(signal.SIGINT)
    assert playing.wait(timeout=30) == 130
    assert not any(known.alive() for known in started)
    assert "`make demo-down` tidies up" in output.read_text()
