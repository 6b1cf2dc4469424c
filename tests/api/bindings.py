"""Who gets which role of the chart in a namespace. The roles themselves are the chart's."""

from __future__ import annotations

from hack.kubectl import Kubectl
from tests.api.actors import ODD_USER, OPERATOR_NAMESPACE

ROLES = {
    "aura-submitter": ("alice", "bob"),
    "aura-author": ("alice",),
    "aura-viewer": ("mallory",),
    "aura-approver": ("alice", "bob", "carol", "mallory", ODD_USER),
}


def bind(namespace: str, role: str) -> tuple[str, ...]:
    return ("create", "rolebinding", role, f"--clusterrole={role}", f"--namespace={namespace}")


def bind_components(kubectl: Kubectl, namespace: str) -> None:
    """What the chart does for each of `scope.namespaces`."""
    for role in ("aura-worker", "aura-controller"):
        kubectl(*bind(namespace, role), f"--serviceaccount={OPERATOR_NAMESPACE}:{role}")


def bind_people(kubectl: Kubectl, namespace: str) -> None:
    for role, users in ROLES.items():
        kubectl(*bind(namespace, role), *(f"--user={user}" for user in users))
