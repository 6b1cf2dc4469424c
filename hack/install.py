"""Puts the chart on a cluster and waits until it acts. Owns the release's name and place; the chart owns the rest."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from aura_operator.api import probe
from aura_operator.errors import AuraError
from hack.cluster import tools
from hack.kubectl import Kubectl
from hack.progress import Progress

CHART = Path(__file__).parents[1] / "charts" / "aura-operator"
RELEASE = "aura"
NAMESPACE = "aura-system"
ACT_SECONDS = 60.0
POLL_SECONDS = 0.2
STAMPING_POLICY = "/aura-task-stamp"
UNSTAMPED_TASK = {
    "apiVersion": "aura.mezmo.com/v1alpha1",
    "kind": "AuraTask",
    "metadata": {"name": "aura-admission-probe", "namespace": "default"},
    "spec": {"agentRef": {"name": "nobody"}, "input": "probe"},
}


class InstallError(AuraError):
    """The chart can't be installed, or what it installed does not act."""

    reason = "InstallFailed"


def install(kubeconfig: Path, *, chart: Path = CHART, values: dict[str, Any] | None = None) -> None:
    """Installs or upgrades the chart (a folder or a package); returns when CRDs are served and policies act."""
    with Progress("installing the chart") as progress:
        _helm(
            kubeconfig,
            "upgrade",
            "--install",
            RELEASE,
            str(chart),
            "--create-namespace",
            "--values",
            "-",
            values=values,
        )
        kubectl = Kubectl(kubeconfig)
        progress.detail = "waiting for the CRDs"
        crds = kubectl("get", "crds", "--output", "name").split()
        ours = [name for name in crds if name.endswith(".aura.mezmo.com")]
        kubectl("wait", "--for=condition=Established", f"--timeout={ACT_SECONDS:.0f}s", *ours)
        progress.detail = "waiting for the admission policies"
        _await_policies(kubectl)


def uninstall(kubeconfig: Path) -> None:
    """Removes the release; what the chart keeps on purpose (CRDs, policies) stays."""
    _helm(kubeconfig, "uninstall", RELEASE, "--ignore-not-found")


def _helm(kubeconfig: Path, *arguments: str, values: dict[str, Any] | None = None) -> None:
    command = [str(tools.bin_folder() / "helm"), "--namespace", NAMESPACE, *arguments]
    done = subprocess.run(
        command,
        env=tools.environment(kubeconfig),
        input=json.dumps(values or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise InstallError(f"`helm {' '.join(arguments)}` failed ({done.returncode}): {done.stderr.strip()}")


def _await_policies(kubectl: Kubectl) -> None:
    """Tries, without storing anything, until a forged approval is refused and a task comes back stamped.

    For some seconds after a CRD is created the mutating policies don't know its kind and refuse it, and a validating
    policy that the API server has not read yet lets everything pass.
    """
    create = ("create", "--dry-run=server", "--output", "json", "--filename", "-")
    # Servers older than 1.36 have no mutating policies, and the chart installs none there.
    stamps = STAMPING_POLICY in kubectl.run("get", "mutatingadmissionpolicies", "--output", "name").stdout
    deadline = time.monotonic() + ACT_SECONDS
    while True:
        refused = kubectl.run(*create, stdin=probe.forged_approval("default"))
        stamped = kubectl.run(*create, stdin=UNSTAMPED_TASK) if stamps else None
        acts = probe.REFUSAL in refused.stderr
        if acts and (
            stamped is None or (stamped.returncode == 0 and "requester" in json.loads(stamped.stdout)["spec"])
        ):
            return
        if time.monotonic() > deadline:
            said = (stamped if acts and stamped else refused).stderr.strip() or "the probe was let through"
            raise InstallError(
                f"the admission policies did not act within {ACT_SECONDS:.0f} s: {said}. "
                "See `kubectl describe validatingadmissionpolicies,mutatingadmissionpolicies`."
            )
        time.sleep(POLL_SECONDS)
