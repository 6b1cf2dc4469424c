"""README.md does what it says: its commands run in order on a real Kubernetes, and its examples are accepted."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster import CHECKOUT, Cluster, tools
from hack.cluster.ports import free_ports
from hack.install import install
from hack.kubectl import Kubectl

README = (CHECKOUT / "README.md").read_text()
PORT = "28190"
SHARED = (".venv", "charts", "crds", "hack", "aura_operator", "pyproject.toml")


def blocks(marker: str) -> list[str]:
    """The shell blocks of README.md right below `<!-- marker -->`."""
    return re.findall(rf"<!-- {marker} -->\n```bash\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster for the README alone: it installs and uninstalls the chart of which there is one in a cluster."""
    cluster = Cluster("readme", tmp_path / "clusters")
    cluster.up()
    yield cluster
    cluster.down()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The checkout as the README sees it, with another port for its tool server: somebody may be playing the demo."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in SHARED:
        (folder / name).symlink_to(CHECKOUT / name)
    shutil.copytree(CHECKOUT / "examples", folder / "examples")
    port = str(free_ports(1)[0])
    for example in (folder / "examples").rglob("*.yaml"):
        example.write_text(example.read_text().replace(PORT, port))
    (folder / "port").write_text(port)
    return folder


@pytest.mark.timeout(900)  # the first run on a machine builds Kubernetes
@pytest.mark.behaviour(2, 15)
def test_its_commands_run_in_order(own_cluster: Cluster, checkout: Path, tmp_path: Path) -> None:
    tools.kubernetes_mcp_server()
    script = "set -euo pipefail\n" + "\n".join(blocks("runs")).replace(PORT, (checkout / "port").read_text())
    log = tmp_path / "output"
    with log.open("wb") as output:
        environment = {**tools.environment(own_cluster.kubeconfig), "TMPDIR": str(tmp_path)}
        running = subprocess.Popen(
            ["bash", "-c", script], cwd=checkout, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            running.wait(timeout=300)
        finally:
            _end_session(running.pid)
    said = log.read_text()
    assert running.returncode == 0, said
    assert "decided    call 3 Approved by bob: seen in INC-4711" in said
    assert "condition met" in said
    assert "(last owner: LeaseExpired)" in said
    kubectl = Kubectl(own_cluster.kubeconfig)
    assert "aura" not in kubectl(
        "get", "crds,validatingadmissionpolicies,mutatingadmissionpolicies", "--output", "name"
    )


@pytest.mark.timeout(900)
def test_its_agent_with_a_real_model_is_accepted(own_cluster: Cluster) -> None:
    install(own_cluster.kubeconfig)
    kubectl = Kubectl(own_cluster.kubeconfig)
    kubectl("apply", "--filename", str(CHECKOUT / "examples" / "incident" / "namespace.yaml"))
    assert len(blocks("accepted")) == 1
    for command in blocks("accepted")[0].splitlines():
        if "-w" in command.split():
            continue  # looks on for ever
        words = command.replace('"$OPENAI_API_KEY"', "none").split()
        assert words[0] == "kubectl"
        kubectl(*(str(CHECKOUT / word) if word.startswith("examples/") else word for word in words[1:]))
    names = kubectl("get", "auraagents,auratasks", "--namespace", "aura-demo", "--output", "name")
    assert "auraagent.aura.mezmo.com/sre-gpt" in names
    assert "auratask.aura.mezmo.com/checkout-" in names


def _end_session(leader: int) -> None:
    """Ends whatever a script that failed has left in the background."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
