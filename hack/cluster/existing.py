"""A cluster that somebody else runs, seen through a kubeconfig. Owns nothing in it: it is neither started nor removed.

Offers what `Cluster` offers, as far as an admin's kubeconfig allows. There is no authority to sign users with, so they
are impersonated.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hack.cluster import tools
from hack.cluster.errors import ClusterError
from hack.cluster.kubeconfig import write_kubeconfig
from hack.cluster.pki import write_private


class ExistingCluster:
    """The current context of `source` (KUBECONFIG or kubectl's default if None). Its files go into `folder`."""

    def __init__(self, folder: Path, source: Path | None = None) -> None:
        self._folder = folder
        self._environment = tools.environment(source)
        text = self._kubectl("config", "view", "--minify", "--flatten", "--raw", "-o", "json")
        self._document: dict[str, Any] = json.loads(text)
        if not self._document.get("contexts"):
            raise ClusterError(
                f"there is no current context in {source or os.environ.get('KUBECONFIG') or '~/.kube/config'}; "
                "choose one with `kubectl config use-context NAME`, or leave CLUSTER unset to use the local cluster."
            )
        self.kubeconfig = folder / "admin.kubeconfig"
        write_private(self.kubeconfig, text.encode())

    @property
    def server(self) -> str:
        return str(self._cluster["server"])

    @property
    def ca_cert(self) -> Path | None:
        """The cluster's authority; None where it has a certificate that the system trusts."""
        data = self._cluster.get("certificate-authority-data")
        if data is None:
            return None
        path = self._folder / "ca.crt"
        path.write_bytes(base64.b64decode(data))
        return path

    def add_user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """Returns a kubeconfig with which kubectl acts as `name` in `groups`, by impersonation."""
        document = json.loads(json.dumps(self._document))
        document["users"][0]["user"].update({"as": name, "as-groups": [*groups, "system:authenticated"]})
        path = self._folder / f"{quote(name, safe='')}.kubeconfig"
        write_private(path, json.dumps(document).encode())
        return path

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Returns a kubeconfig with a token of an existing ServiceAccount, good for a day."""
        token = self._kubectl("--namespace", namespace, "create", "token", name, "--duration", "24h").strip()
        ca = self.ca_cert
        return write_kubeconfig(
            self._folder / f"{namespace}-{name}.kubeconfig",
            context=str(self._document["current-context"]),
            server=self.server,
            ca=ca.read_bytes() if ca else None,
            user=f"{namespace}:{name}",
            credentials=token,
        )

    @property
    def _cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = self._document["clusters"][0]["cluster"]
        return found

    def _kubectl(self, *arguments: str) -> str:
        done = subprocess.run(
            ["kubectl", *arguments], env=self._environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ClusterError(f"`kubectl {' '.join(arguments)}` failed on the existing cluster: {done.stderr.strip()}")
        return done.stdout
