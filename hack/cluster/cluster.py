"""One local Kubernetes: coming up, going down, its users. Owns its folder and the processes recorded there.

Control plane only (etcd, API server, controllers): no nodes, no root, nothing but the loopback interface.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

from hack.cluster import golang, pki, process
from hack.cluster.api import Api
from hack.cluster.components import Component, Layout, Ports, command
from hack.cluster.errors import ClusterError
from hack.cluster.kubeconfig import write_kubeconfig
from hack.cluster.ports import free_ports
from hack.progress import Progress

CHECKOUT = Path(__file__).parents[2]
DEFAULT_DIRECTORY = CHECKOUT / ".local" / "clusters"
READY_SECONDS = 90.0
POLL_SECONDS = 0.05
PORT_ATTEMPTS = 3
TOKEN_SECONDS = 24 * 3600


class Cluster:
    """A named local cluster; making the object starts nothing.

    `up` and `down` may be called by several processes at once: a lock on the folder puts them in order.
    """

    def __init__(self, name: str = "dev", directory: Path | None = None) -> None:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", name):
            raise ClusterError(
                f"{name!r} can't name a cluster: use up to 40 of a-z, 0-9 and -, like `dev` or `test-1`."
            )
        self.name = name
        self.folder = (directory if directory is not None else DEFAULT_DIRECTORY).resolve() / name
        self._layout = Layout(folder=self.folder)

    # What it is

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of a cluster admin (group system:masters)."""
        return self._layout.admin

    @property
    def ca_cert(self) -> Path:
        return self._layout.pki("ca.crt")

    @property
    def ca_key(self) -> Path:
        return self._layout.pki("ca.key")

    @property
    def server_cert(self) -> Path:
        """The API server's certificate, for 127.0.0.1 and localhost: a proxy in front of it can use it as its own."""
        return self._layout.pki("server.crt")

    @property
    def server_key(self) -> Path:
        return self._layout.pki("server.key")

    @property
    def authority(self) -> pki.KeyPair:
        return pki.KeyPair(certificate=self.ca_cert.read_bytes(), key=self.ca_key.read_bytes())

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self._ports().api}"

    @property
    def context(self) -> str:
        return f"aura-{self.name}"

    @property
    def exists(self) -> bool:
        """Whether it has come up once and was not taken down since."""
        return self._layout.facts.is_file()

    def processes(self) -> dict[Component, process.ProcessId | None]:
        """Each component's process, None where it doesn't run."""
        found = {component: process.recorded(self._layout.record(component)) for component in Component}
        return {component: known if known and known.alive() else None for component, known in found.items()}

    @property
    def running(self) -> bool:
        return self.exists and all(self.processes().values())

    # Up and down

    def up(self) -> Path:
        """Starts what doesn't run and returns the admin's kubeconfig once the cluster is ready.

        A cluster that exists keeps its data. If it can't be started, nothing of a new one is left behind.
        """
        kube = golang.kube()
        with Progress(f"starting cluster {self.name}") as progress, self._locked():
            if self.exists:
                self._start_all(kube, progress)
            else:
                self._create(kube, progress)
        return self.kubeconfig

    def down(self) -> None:
        """Ends every process and removes the folder. Does nothing if there is no such cluster."""
        if not self.folder.exists():
            return
        with self._locked():
            self._remove()

    def stop_api(self) -> None:
        """Kills the API server alone: clients meet a refused connection, as in an outage."""
        known = process.recorded(self._layout.record(Component.API_SERVER))
        if known is not None:
            process.kill(known)

    def start_api(self) -> None:
        """Starts the API server again, on the same port and data, and waits until it is ready."""
        self._start(Component.API_SERVER, golang.kube())
        self._await_ready("/readyz")

    # Who may use it

    def add_user(self, name: str, groups: Iterable[str] = ()) -> Path:
        """Returns a kubeconfig for `name` in `groups`: a client certificate. What the user may do, RBAC says."""
        credentials = pki.sign_client(self.authority, name, groups)
        return self._kubeconfig_for(name, credentials)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Returns a kubeconfig with a token of an existing ServiceAccount, good for a day. It holds no certificate."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        status, answer = self._api().request("POST", path, request)
        if status == 404:
            raise ClusterError(
                f"cluster {self.name} has no ServiceAccount {namespace}/{name}; install the chart, or create it with "
                f"`kubectl --kubeconfig {self.kubeconfig} -n {namespace} create serviceaccount {name}`."
            )
        if status != 201:
            raise ClusterError(f"cluster {self.name} refused a token for {namespace}/{name} ({status}): {answer}")
        return self._kubeconfig_for(f"system:serviceaccount:{namespace}:{name}", answer["status"]["token"])

    # How it is done

    def _create(self, kube: Path, progress: Progress) -> None:
        for attempt in range(1, PORT_ATTEMPTS + 1):
            self._remove_content()
            try:
                self._lay_out()
                self._start_all(kube, progress)
            except ClusterError as error:
                self._remove()
                if "address already in use" not in str(error) or attempt == PORT_ATTEMPTS:
                    raise
                self.folder.mkdir(parents=True)
            except BaseException:
                self._remove()
                raise
            else:
                return

    def _lay_out(self) -> None:
        """Writes certificates, kubeconfigs and ports: all that the processes find when they start."""
        self._layout.create()
        etcd, etcd_peer, api = free_ports(3)
        ports = Ports(etcd=etcd, etcd_peer=etcd_peer, api=api)
        (self.folder / "ports.json").write_text(json.dumps(asdict(ports)))
        authority = pki.new_authority(f"aura-{self.name}")
        authority.write(self.ca_cert, self.ca_key)
        hosts = ["127.0.0.1", "localhost", "kubernetes.default.svc"]
        server = pki.sign_server(authority, "kube-apiserver", hosts=hosts)
        server.write(self.server_cert, self.server_key)
        pki.write_private(self._layout.pki("service-accounts.key"), pki.new_key())
        admin = pki.sign_client(authority, "admin", ["system:masters"])
        admin.write(self._layout.pki("admin.crt"), self._layout.pki("admin.key"))
        self._write_kubeconfig(self._layout.admin, "admin", admin)
        controllers = pki.sign_client(authority, "system:kube-controller-manager")
        self._write_kubeconfig(self._layout.controllers, "controllers", controllers)

    def _start_all(self, kube: Path, progress: Progress) -> None:
        for component, known in self.processes().items():
            if known is None:
                # What ended before this start says nothing about it.
                self._layout.record(component).unlink(missing_ok=True)
        progress.detail = "etcd and API server"
        self._start(Component.ETCD, kube)
        self._start(Component.API_SERVER, kube)
        self._await_ready("/readyz")
        progress.detail = "controllers"
        self._start(Component.CONTROLLERS, kube)
        # A controller makes this account, so it shows that they act.
        self._await_ready("/api/v1/namespaces/default/serviceaccounts/default")
        self._layout.facts.write_text(json.dumps({"name": self.name, "version": golang.kube_version()}))

    def _start(self, component: Component, kube: Path) -> None:
        if self.processes()[component] is None:
            arguments = command(component, kube, self._layout, self._ports())
            process.start(
                arguments, cwd=self.folder, log=self._layout.log(component), record=self._layout.record(component)
            )

    def _await_ready(self, path: str) -> None:
        api, deadline = self._api(), time.monotonic() + READY_SECONDS
        while not api.answers(path):
            for component in Component:
                known = process.recorded(self._layout.record(component))
                if known is not None and not known.alive():
                    raise ClusterError(f"cluster {self.name}: {component.value} ended.\n{self._tail(component)}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"cluster {self.name} did not answer {path} within {READY_SECONDS:.0f} s; the machine may be "
                    f"overloaded: try again.\n{self._tail(Component.API_SERVER)}"
                )
            time.sleep(POLL_SECONDS)

    def _tail(self, component: Component) -> str:
        lines = self._layout.log(component).read_text(errors="replace").splitlines()
        return "\n".join([f"The end of its log ({component.value}):", *lines[-12:]])

    def _remove(self) -> None:
        self._remove_content()
        self.folder.rmdir()

    def _remove_content(self) -> None:
        # From the last to the first, so that none complains about a missing server.
        for component in reversed(Component):
            known = process.recorded(self._layout.record(component))
            if known is not None:
                # SIGKILL: an API server waits a minute for open watches, and the data goes anyway.
                process.kill(known)
        for entry in self.folder.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Holds a lock on the folder itself, so that no lock file is left when the folder goes."""
        while True:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self.folder.exists() and os.path.samestat(os.fstat(descriptor), self.folder.stat()):
                    yield
                    return
                # Whoever held the lock removed the folder: take the one that is there now.
            finally:
                os.close(descriptor)

    def _ports(self) -> Ports:
        try:
            return Ports(**json.loads((self.folder / "ports.json").read_text()))
        except FileNotFoundError:
            raise ClusterError(
                f"there is no cluster {self.name} in {self.folder.parent}; "
                f"start it with `python -m hack.cluster up {self.name}`."
            ) from None

    def _api(self) -> Api:
        pki_path = self._layout.pki
        return Api(
            port=self._ports().api, ca=self.ca_cert, certificate=pki_path("admin.crt"), key=pki_path("admin.key")
        )

    def _kubeconfig_for(self, user: str, credentials: pki.KeyPair | str) -> Path:
        return self._write_kubeconfig(self._layout.users / f"{quote(user, safe='')}.kubeconfig", user, credentials)

    def _write_kubeconfig(self, path: Path, user: str, credentials: pki.KeyPair | str) -> Path:
        return write_kubeconfig(
            path,
            context=self.context,
            server=self.server,
            ca=self.ca_cert.read_bytes(),
            user=user,
            credentials=credentials,
        )


def names(directory: Path | None = None) -> list[str]:
    """The clusters in `directory`, running or not."""
    folder = directory if directory is not None else DEFAULT_DIRECTORY
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
