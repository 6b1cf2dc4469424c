"""What every test may ask for: a real Kubernetes with the chart installed, a fresh namespace, kubectl, users.

CLUSTER chooses the cluster: unset, a local one that lives as long as this session (each pytest-xdist worker has its
own); `current`, the current context of the user's kubeconfig; `kind`, one made by kind where a Docker engine answers.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_kubernetes.options import ClusterOptions
from pytest_kubernetes.providers.base import AClusterManager

from hack.cluster import AnyCluster, Cluster, ExistingCluster, golang, names, pki, process, tools
from hack.install import install, uninstall
from hack.kubectl import Kubectl

SESSION_CLUSTER = f"tests-{os.getpid()}"
KIND_READY_SECONDS = 300

USERS = {
    "alice": ("sre",),
    "bob": ("sre-oncall",),
    "carol": ("sre-oncall",),
    "mallory": (),
}
"""Who the tests know, and their groups. None may do anything until a test binds a role to them."""


# The cluster of the session


@pytest.fixture(scope="session")
def cluster(
    k8s_manager: Callable[[str], type[AClusterManager]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AnyCluster]:
    """A running cluster with CRDs, admission policies and roles in place."""
    folder = tmp_path_factory.mktemp("cluster")
    with pytest.MonkeyPatch.context() as patch, _chosen_cluster(k8s_manager, folder) as chosen:
        # pytest-kubernetes runs the first kubectl on PATH, and deletes the kubeconfig that it is given: hence a copy.
        patch.setenv("PATH", tools.environment()["PATH"])
        copy = Path(shutil.copy(chosen.kubeconfig, folder / "pytest-kubernetes.kubeconfig"))
        external = k8s_manager("external")("aura", None, copy)
        external.create()
        install(chosen.kubeconfig)
        yield chosen
        if isinstance(chosen, ExistingCluster):
            uninstall(chosen.kubeconfig)
        external.delete()


@contextmanager
def _chosen_cluster(k8s_manager: Callable[[str], type[AClusterManager]], folder: Path) -> Iterator[AnyCluster]:
    match os.environ.get("CLUSTER", "local"):
        case "local":
            local = Cluster(SESSION_CLUSTER)
            local.up()
            try:
                yield local
            finally:
                local.down()
        case "current":
            yield ExistingCluster(folder)
        case "kind":
            _demand_docker()
            kind = k8s_manager("kind")("aura")
            kubeconfig = folder / "kind.kubeconfig"
            version = golang.kube_version().removeprefix("v")
            kind.create(ClusterOptions(api_version=version, kubeconfig_path=kubeconfig), timeout=KIND_READY_SECONDS)
            try:
                yield ExistingCluster(folder, kubeconfig)
            finally:
                kind.delete()
        case other:
            raise pytest.UsageError(f"CLUSTER={other} is unknown: leave it unset, or say `current` or `kind`.")


def _demand_docker() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True, check=False).returncode != 0:
        raise pytest.UsageError("CLUSTER=kind needs a Docker engine that answers `docker info`; leave CLUSTER unset.")


# What a test works with


@pytest.fixture
def namespace(cluster: AnyCluster) -> Iterator[str]:
    """A fresh namespace; it is deleted after the test without waiting for it."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    kubectl = Kubectl(cluster.kubeconfig)
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def kubectl(cluster: AnyCluster, namespace: str) -> Kubectl:
    """kubectl as a cluster admin, in the test's namespace."""
    return Kubectl(cluster.kubeconfig, namespace=namespace)


@pytest.fixture(scope="session")
def user_kubeconfig(cluster: AnyCluster) -> Callable[[str], Path]:
    """The kubeconfig of a user of USERS, or of anybody else, who is then in no group."""
    known: dict[str, Path] = {}

    def kubeconfig(name: str) -> Path:
        if name not in known:
            known[name] = cluster.add_user(name, USERS.get(name, ()))
        return known[name]

    return kubeconfig


@pytest.fixture
def kubectl_as(kubectl: Kubectl, user_kubeconfig: Callable[[str], Path]) -> Callable[[str], Kubectl]:
    """`kubectl_as("bob")("get", "auraapprovals")`: kubectl in the hands of a user, in the test's namespace."""
    return lambda name: kubectl.with_kubeconfig(user_kubeconfig(name))


@pytest.fixture(scope="session")
def proxy_arguments(cluster: AnyCluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a FaultProxy or a ProxyThread in front of the cluster takes: `FaultProxy(**proxy_arguments)`."""
    folder = tmp_path_factory.mktemp("proxy")
    authority = cluster.authority if isinstance(cluster, Cluster) else pki.new_authority("fault-proxy-authority")
    certificate, key, ca = (folder / name for name in ("proxy.crt", "proxy.key", "ca.crt"))
    pki.sign_server(authority, "fault-proxy", hosts=["127.0.0.1", "localhost"]).write(certificate, key)
    ca.write_bytes(authority.certificate)
    return {
        "upstream": cluster.server,
        "upstream_ca": cluster.ca_cert,
        "certificate": certificate,
        "key": key,
        "ca": ca,
    }


# The session


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--behaviours",
        action="store_true",
        help="name the tests of each behaviour and run none (see docs/behaviours.md)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("behaviours"):
        config.option.collectonly = True
    # `kill` and `timeout` end a session like Ctrl-C does: with its fixtures' clean-up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds Kubernetes where a test will need it: here, since a minute's build must not count as a test's time."""
    wanted = {fixture for item in session.items for fixture in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly or wanted.isdisjoint({"cluster", "local_cluster"}):
        return
    tools.bin_folder()
    for name in names():
        owner = name.removeprefix("tests-")
        if name != owner and owner.isdigit() and not process.exists(int(owner)):
            Cluster(name).down()  # Its session was killed before it could tidy up.


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.getoption("behaviours"):
        return
    tests_of: dict[int, list[str]] = {}
    for item in terminalreporter._session.items if terminalreporter._session else []:
        for marker in item.iter_markers("behaviour"):
            for number in marker.args:
                tests_of.setdefault(number, []).append(item.nodeid)
    terminalreporter.section("behaviours")
    for number in range(1, max(tests_of, default=0) + 1):
        tests = tests_of.get(number, [])
        terminalreporter.write_line(f"{number:>3}  {len(tests)} tests" if tests else f"{number:>3}  no test", bold=True)
        for test in tests:
            terminalreporter.write_line(f"       {test}")
