"""The chart as people get it, a package: it installs and acts; a copy of the chart without its CRDs says so."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aura_operator.api import probe
from hack.cluster import Cluster, tools
from hack.install import CHART, NAMESPACE, install
from hack.kubectl import Kubectl

KINDS = {"auraagents", "auraapprovals", "auracheckpoints", "aurasessions", "auratasks"}


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = str(tools.bin_folder() / "helm")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


# The session's cluster has the chart already, from its folder: the package needs one where nothing was before.


@pytest.fixture(scope="module")
def local_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster("chart-package", tmp_path_factory.mktemp("clusters"))
    made.up()
    try:
        yield made
    finally:
        made.down()


def test_a_package_brings_crds_roles_and_policies_that_act(local_cluster: Cluster, tmp_path: Path) -> None:
    packaged = helm("package", str(CHART), "--destination", str(tmp_path))
    assert packaged.returncode == 0, packaged.stderr
    (package,) = tmp_path.glob("aura-operator-*.tgz")

    install(local_cluster.kubeconfig, chart=package)

    kubectl = Kubectl(local_cluster.kubeconfig)
    served = kubectl("api-resources", "--api-group=aura.mezmo.com", "--output=name").split()
    assert {name.removesuffix(".aura.mezmo.com") for name in served} == KINDS
    roles = json.loads(kubectl("get", "clusterroles", "--output=json"))["items"]
    assert {"aura-controller", "aura-worker", "aura-viewer", "aura-submitter", "aura-approver", "aura-author"} <= {
        role["metadata"]["name"] for role in roles
    }
    accounts = kubectl("get", "serviceaccounts", f"--namespace={NAMESPACE}", "--output=name").split()
    assert set(accounts) == {f"serviceaccount/{name}" for name in ("default", "aura-controller", "aura-worker")}
    # Stored for real, were it not refused: not a dry run.
    forged = kubectl.run("create", "--filename=-", stdin=probe.forged_approval("default"))
    assert forged.returncode != 0
    assert probe.REFUSAL in forged.stderr


def as_a_text_file(crds: Path) -> None:
    """What git writes where symbolic links are off (core.symlinks=false, as on Windows)."""
    crds.write_text("../../../crds")


def as_an_empty_folder(crds: Path) -> None:
    crds.mkdir()


def not_at_all(crds: Path) -> None:
    """What a copy of `charts/` alone comes to: the link leads nowhere."""


@pytest.mark.parametrize("left", [as_a_text_file, as_an_empty_folder, not_at_all])
def test_a_chart_that_lost_its_crds_says_so(tmp_path: Path, left: Callable[[Path], None]) -> None:
    chart = tmp_path / "aura-operator"
    shutil.copytree(CHART, chart, ignore=shutil.ignore_patterns("crds"))
    left(chart / "files" / "crds")

    rendered = helm("template", "aura", str(chart))
    assert rendered.returncode != 0
    assert "the chart holds no CRDs" in rendered.stderr
    assert "crds.install=false" in rendered.stderr

    assert helm("template", "aura", str(chart), "--set=crds.install=false").returncode == 0
