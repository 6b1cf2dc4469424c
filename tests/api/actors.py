"""Somebody who uses the API server, and what it said to him. Owns no assertion about behaviour."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client, config

from aura_operator.api import GROUP, VERSION
from hack.kubectl import Kubectl
from hack.rig.waiting import wait_until

OPERATOR_NAMESPACE = "aura-system"
WORKER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:aura-worker"
CONTROLLER = f"system:serviceaccount:{OPERATOR_NAMESPACE}:aura-controller"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
ODD_USER = "oidc:team/a~b"
"""A name whose signs mean something in a JSON pointer."""


Object = dict[str, Any]


class Actor:
    """Somebody with kubectl, in one namespace; `user` is whom an admin's kubeconfig impersonates, if anybody."""

    def __init__(self, kubectl: Kubectl, *, user: str | None = None) -> None:
        self._kubectl = kubectl
        self._user = user
        self._flags = () if user is None else (f"--as={user}",)

    def run(self, *arguments: str, stdin: str | object = None) -> subprocess.CompletedProcess[str]:
        return self._kubectl.run(*arguments, *self._flags, stdin=stdin)

    def does(self, *arguments: str, stdin: str | object = None) -> str:
        """What kubectl printed; fails the test if it was refused."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, stdin: str | object = None) -> str:
        """The server's words; fails the test if it was allowed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} was allowed: {done.stdout}"
        return done.stderr

    def create(self, value: Object) -> Object:
        created: Object = json.loads(self.does("create", "--output=json", "--filename=-", stdin=value))
        return created

    def get(self, kind: str, name: str) -> Object:
        found: Object = json.loads(self.does("get", kind, name, "--output=json"))
        return found

    def patch(self, kind: str, name: str, change: Object) -> None:
        self.does(*_patch(kind, name, change))

    def refused_patch(self, kind: str, name: str, change: Object) -> str:
        return self.refused(*_patch(kind, name, change))

    def patch_status(self, plural: str, name: str, change: Object) -> Object:
        """Not by kubectl, which reads the subresource first: the operator's accounts may only patch it."""
        api_client = config.new_client_from_config(str(self._kubectl.kubeconfig))  # type: ignore[no-untyped-call]
        if self._user is not None:
            api_client.set_default_header("Impersonate-User", self._user)
        patch = client.CustomObjectsApi(api_client).patch_namespaced_custom_object_status
        assert self._kubectl.namespace is not None
        patched: Object = patch(  # type: ignore[assignment]  # the client calls any JSON an object
            GROUP,
            VERSION,
            self._kubectl.namespace,
            plural,
            name,
            {"status": change},
            field_validation="Strict",
            _content_type="application/merge-patch+json",
        )
        return patched

    def refused_status_patch(self, plural: str, name: str, change: Object) -> str:
        with pytest.raises(client.ApiException) as refusal:
            self.patch_status(plural, name, change)
        return str(json.loads(refusal.value.body or "")["message"])

    def decide(self, approval: str, **decision: object) -> None:
        self.patch("auraapproval", approval, {"spec": {"decision": decision}})

    def refused_decision(self, approval: str, **decision: object) -> str:
        return self.refused_patch("auraapproval", approval, {"spec": {"decision": decision}})


def _patch(kind: str, name: str, change: Object) -> tuple[str, ...]:
    return ("patch", kind, name, "--type=merge", "--patch", json.dumps(change))


def await_true(condition: Callable[[], bool], what: str, seconds: float = 30.0) -> None:
    """Asks again until it holds: the server takes up policies and roles within a second or two."""
    wait_until(condition, f"moment when {what}", seconds, pause_seconds=0.05)
