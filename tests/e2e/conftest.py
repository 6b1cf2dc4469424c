"""A stage for real processes: a namespace that the operator serves, a ledger, workers and a controller on demand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from aura_operator.store.interface import add
from aura_operator.store.kube import KubeStore
from aura_operator.store.leases import WORKER_SELECTOR
from aura_operator.store.resources import Manifest
from aura_operator.store.view import task_ref
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.ledger_process import RunningLedger, running_ledger
from aura_operator.testing.proxy_thread import ProxyThread
from hack.cluster import AnyCluster
from hack.install import NAMESPACE
from hack.kubectl import Kubectl
from tests.e2e.toolserver import ToolServer
from tests.processes import Processes
from tests.stage import APPROVER, Stage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A module has either the shared operator or processes of its own: else the shared worker takes the tasks of a test
    that kills its own."""
    modules: dict[Path, set[str]] = {}
    for item in items:
        modules.setdefault(item.path, set()).update(getattr(item, "fixturenames", ()))
    for path, fixtures in modules.items():
        if {"operator", "processes"} <= fixtures:
            raise pytest.UsageError(f"{path.name} uses `operator` and `processes`; split it into two modules")


@pytest.fixture(scope="session")
def ledger_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLedger]:
    """One ledger process for the session; `ledger` empties it for each test."""
    with running_ledger(tmp_path_factory.mktemp("ledger") / "ledger.jsonl") as server:
        yield server


@pytest.fixture
def ledger(ledger_server: RunningLedger) -> Ledger:
    """What the tool server was called with in this test."""
    return ledger_server.afresh().ledger


@pytest.fixture
def served_namespace(kubectl: Kubectl, namespace: str) -> str:
    """The test's namespace, with the operator's rights in it, as `scope.namespaces` gives them, and an approver."""
    for component in ("worker", "controller"):
        kubectl(
            "create",
            "rolebinding",
            f"aura-{component}",
            f"--clusterrole=aura-{component}",
            f"--serviceaccount={NAMESPACE}:aura-{component}",
        )
    kubectl("create", "rolebinding", "approvers", "--clusterrole=aura-approver", f"--user={APPROVER}")
    return namespace


@pytest.fixture
async def stage(cluster: AnyCluster, served_namespace: str, ledger_server: RunningLedger) -> AsyncIterator[Stage]:
    store = await KubeStore.connect(str(cluster.kubeconfig))
    yield Stage(store=store, namespace=served_namespace, ledger_url=ledger_server.url)
    await store.aclose()


@pytest.fixture
def processes(cluster: AnyCluster, served_namespace: str, tmp_path: Path) -> Iterator[Processes]:
    """Workers and controllers for the test's own namespace, which it may kill as it likes."""
    with _ended_well(_processes(cluster, tmp_path, served_namespace), cluster) as started:
        yield started


@pytest.fixture(scope="module")
def operator(cluster: AnyCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """One controller and one worker for all namespaces, shared by the tests of a module: they leave them running."""
    admin = Kubectl(cluster.kubeconfig)
    folder = tmp_path_factory.mktemp("operator")
    for component in ("worker", "controller"):
        account = f"--serviceaccount={NAMESPACE}:aura-{component}"
        admin("create", "clusterrolebinding", f"tests-{component}", f"--clusterrole=aura-{component}", account)
    try:
        with _ended_well(_processes(cluster, folder, None), cluster) as started:
            started.controller()
            started.worker()
            yield started
    finally:
        admin("delete", "clusterrolebinding", "tests-worker", "tests-controller")


def _processes(cluster: AnyCluster, folder: Path, namespace: str | None) -> Processes:
    return Processes(
        folder=folder,
        namespace=namespace,
        operator_namespace=NAMESPACE,
        worker_kubeconfig=cluster.service_account_kubeconfig(NAMESPACE, "aura-worker"),
        controller_kubeconfig=cluster.service_account_kubeconfig(NAMESPACE, "aura-controller"),
    )


@contextmanager
def _ended_well(started: Processes, cluster: AnyCluster) -> Iterator[Processes]:
    try:
        yield started
    finally:
        started.end()
        # Killed processes leave their Leases behind; the next test's workers would count them as peers for 15 s.
        admin = Kubectl(cluster.kubeconfig).in_namespace(NAMESPACE)
        admin("delete", "leases", "--selector", WORKER_SELECTOR)
        admin("delete", "lease", "aura-controller", "--ignore-not-found")


@pytest.fixture
def proxy(proxy_arguments: dict[str, Any]) -> Iterator[ProxyThread]:
    """A fault proxy in front of the API server; `through` makes processes go that way."""
    with ProxyThread(**proxy_arguments) as thread:
        yield thread


@pytest.fixture
def through(tmp_path: Path) -> Callable[[ProxyThread, Path], Path]:
    """`through(proxy, processes.worker_kubeconfig)`: the same account's kubeconfig, by way of the proxy."""

    def rewritten(thread: ProxyThread, kubeconfig: Path) -> Path:
        token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
        return thread.proxy.kubeconfig(token, tmp_path / f"proxied-{thread.proxy.port}-{kubeconfig.name}")

    return rewritten


@pytest.fixture
def approve(kubectl_as: Callable[[str], Kubectl]) -> Callable[..., None]:
    """`approve("one-2", reason="ok")`: bob decides with kubectl, as a person would."""

    def decide(approval: str, *, by: str = APPROVER, approved: bool = True, reason: str = "ok", **more: str) -> None:
        body = {"spec": {"decision": {"approved": approved, "reason": reason, **more}}}
        kubectl_as(by)("patch", "auraapproval", approval, "--type=merge", "--patch", json.dumps(body))

    return decide


@pytest.fixture
def once_required() -> list[dict[str, Any]]:
    """The rule that makes `led__once` need a person."""
    return [{"match": "led__once", "effect": "Once", "approval": "Required"}]


@pytest.fixture
async def as_worker(cluster: AnyCluster, stage: Stage) -> AsyncIterator[Callable[..., Awaitable[Manifest]]]:
    """`as_worker("one", epoch=3)`: writes status fields of a task with the worker's rights, as no user may."""
    store = await KubeStore.connect(str(cluster.service_account_kubeconfig(NAMESPACE, "aura-worker")))

    async def write(task: str, **fields: Any) -> Manifest:
        ops = [add(f"/status/{name}", value) for name, value in fields.items()]
        return await store.patch(task_ref(stage.namespace, task), ops, subresource="status")

    yield write
    await store.aclose()


@pytest.fixture
def toolserver(tmp_path: Path) -> Iterator[ToolServer]:
    server = ToolServer(tmp_path / "calls.jsonl")
    server.start()
    yield server
    server.stop()
