"""The three processes of a control plane. Owns their flags and the layout of a cluster's folder; starts nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import assert_never


class Component(Enum):
    """In the order in which they start."""

    ETCD = "etcd"
    API_SERVER = "kube-apiserver"
    CONTROLLERS = "kube-controller-manager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    etcd: int
    etcd_peer: int
    api: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where things are in a cluster's folder."""

    folder: Path

    @property
    def facts(self) -> Path:
        """Written when the cluster has come up: without it the folder is what an interrupted start left."""
        return self.folder / "cluster.json"

    @property
    def admin(self) -> Path:
        return self.folder / "admin.kubeconfig"

    @property
    def controllers(self) -> Path:
        return self.folder / "controllers.kubeconfig"

    @property
    def users(self) -> Path:
        return self.folder / "users"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def pki(self, name: str) -> Path:
        return self.folder / "pki" / name

    def log(self, component: Component) -> Path:
        return self.folder / "logs" / f"{component.value}.log"

    def record(self, component: Component) -> Path:
        return self.folder / "run" / f"{component.value}.json"

    def create(self) -> None:
        for name in ("pki", "logs", "run", "users", "data"):
            (self.folder / name).mkdir(mode=0o700)


def command(component: Component, kube: Path, layout: Layout, ports: Ports) -> list[str]:
    etcd = f"http://127.0.0.1:{ports.etcd}"
    peer = f"http://127.0.0.1:{ports.etcd_peer}"
    match component:
        case Component.ETCD:
            # fsync stays on: figures that are measured here must mean something.
            flags = [
                "--name=local",
                f"--data-dir={layout.data}",
                f"--listen-client-urls={etcd}",
                f"--advertise-client-urls={etcd}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=local={peer}",
                "--log-level=warn",
            ]
        case Component.API_SERVER:
            flags = [
                f"--etcd-servers={etcd}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={ports.api}",
                # A loopback address can't be an endpoint of the Service `kubernetes`, and nothing here needs one.
                "--endpoint-reconciler-type=none",
                f"--tls-cert-file={layout.pki('server.crt')}",
                f"--tls-private-key-file={layout.pki('server.key')}",
                f"--client-ca-file={layout.pki('ca.crt')}",
                f"--service-account-key-file={layout.pki('service-accounts.key')}",
                f"--service-account-signing-key-file={layout.pki('service-accounts.key')}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--authorization-mode=RBAC",
                "--profiling=false",
            ]
        case Component.CONTROLLERS:
            flags = [
                f"--kubeconfig={layout.controllers}",
                f"--service-account-private-key-file={layout.pki('service-accounts.key')}",
                f"--root-ca-file={layout.pki('ca.crt')}",
                "--use-service-account-credentials",
                "--leader-elect=false",
                # It serves nothing that is needed here, and its usual port would keep a second cluster from starting.
                "--secure-port=0",
                # The defaults (20 and 30 a second) make the garbage collector crawl behind a test run.
                "--kube-api-qps=200",
                "--kube-api-burst=400",
                "--profiling=false",
            ]
        case _:
            assert_never(component)
    return [str(kube / "kube"), component.value, *flags]
