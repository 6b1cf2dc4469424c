"""The incident's scene on a cluster: chart, namespace, people, Deployment, agent. Owns setting up and taking away.

Everything that is applied stands in examples/incident, for readers who do the same by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hack.cluster import CHECKOUT, AnyCluster
from hack.demo.errors import DemoError
from hack.install import NAMESPACE as OPERATOR_NAMESPACE
from hack.install import RELEASE, install, uninstall
from hack.kubectl import Kubectl
from hack.progress import Progress

EXAMPLES = CHECKOUT / "examples" / "incident"
NAMESPACE = "aura-demo"
LABEL = "aura.mezmo.com/example=incident"
DEPLOYMENT = "checkout"
TASK = "inc-4711"
REQUESTER, REQUESTER_GROUPS = "alice", ("sre", "sre-oncall")
APPROVER, APPROVER_GROUPS = "bob", ("sre-oncall",)
AGENT_URL = "http://127.0.0.1:28190/mcp"
OLDEST_MINOR = 36
DELETE_SECONDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """kubectl in the hands of an admin, of the one who asks and of the one who decides; all in the demo's namespace."""

    admin: Kubectl
    requester: Kubectl
    approver: Kubectl


def set_up(cluster: AnyCluster) -> Scene:
    """Installs the chart for the demo's namespace alone and applies the examples, but neither agent nor task."""
    admin = Kubectl(cluster.kubeconfig, namespace=NAMESPACE)
    _apply(admin, "namespace.yaml")
    install(cluster.kubeconfig, values={"scope": {"namespaces": [NAMESPACE]}})
    for name in ("people.yaml", "tool-server.yaml", "deployment.yaml"):
        _apply(admin, name)
    return Scene(
        admin=admin,
        requester=admin.with_kubeconfig(cluster.add_user(REQUESTER, REQUESTER_GROUPS)),
        approver=admin.with_kubeconfig(cluster.add_user(APPROVER, APPROVER_GROUPS)),
    )


def kubeconfigs(cluster: AnyCluster) -> dict[str, Path]:
    """What the processes authenticate with: the chart's service accounts, and that of the tool server."""
    return {
        "worker": cluster.service_account_kubeconfig(OPERATOR_NAMESPACE, "aura-worker"),
        "controller": cluster.service_account_kubeconfig(OPERATOR_NAMESPACE, "aura-controller"),
        "tool-server": cluster.service_account_kubeconfig(NAMESPACE, "k8s-tools"),
    }


def apply_agent(admin: Kubectl, url: str) -> None:
    """The agent of the examples; its tool server has another port if somebody else has the usual one."""
    admin("apply", "--filename", "-", stdin=(EXAMPLES / "agent.yaml").read_text().replace(AGENT_URL, url))


def submit(requester: Kubectl) -> None:
    requester("create", "--filename", str(EXAMPLES / "task.yaml"))


def demand_fit(admin: Kubectl, *, again: bool) -> None:
    """Raises DemoError if somebody's own cluster is none where the demo can and may play. `again`: it did before."""
    minor = int("".join(filter(str.isdigit, admin.json("version")["serverVersion"]["minor"])))
    if minor < OLDEST_MINOR:
        raise DemoError(
            f"this cluster runs Kubernetes 1.{minor}. The demo shows votes that the API server files, which takes 1.36 "
            "or newer (on older ones the operator works with `spec.decisions`, see docs/approvals.md). "
            "Use the local cluster: leave CLUSTER unset."
        )
    found = admin.run("get", "namespace", NAMESPACE, "--output", "jsonpath={.metadata.labels}")
    if found.returncode == 0 and LABEL.split("=")[0] not in found.stdout:
        raise DemoError(f"namespace {NAMESPACE} is there and is not the demo's. Rename it, or use the local cluster.")
    releases = admin.in_namespace(OPERATOR_NAMESPACE)("get", "secrets", "--selector", f"owner=helm,name={RELEASE}")
    if releases.strip() and not again:
        raise DemoError(
            f"the chart is installed already (release {RELEASE} in {OPERATOR_NAMESPACE}); the demo would change "
            "what it serves. Do `The same by hand` of README.md there, or use the local cluster: leave CLUSTER unset."
        )


def clear(admin: Kubectl) -> None:
    """Deletes the demo's namespace with all that is in it, and waits until it is gone."""
    with Progress(f"deleting namespace {NAMESPACE}"):
        admin("delete", "namespace", "--selector", LABEL, "--ignore-not-found", f"--timeout={DELETE_SECONDS}s")
    if has_operator_namespace(admin):
        admin.in_namespace(OPERATOR_NAMESPACE)("delete", "leases", "--all")


def has_operator_namespace(admin: Kubectl) -> bool:
    return admin.run("get", "namespace", OPERATOR_NAMESPACE).returncode == 0


def take_away(admin: Kubectl, *, operator_namespace: bool) -> None:
    """Uninstalls the chart from a cluster that stays; CRDs and admission policies stay too, as the chart says."""
    uninstall(admin.kubeconfig)
    if operator_namespace:
        admin("delete", "namespace", OPERATOR_NAMESPACE, "--ignore-not-found", f"--timeout={DELETE_SECONDS}s")


def _apply(admin: Kubectl, name: str) -> None:
    admin("apply", "--filename", str(EXAMPLES / name))
