"""Installations that differ: tasks that come out of a backup, and servers that have no mutating policies."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aura_operator.api import probe
from hack.cluster import tools
from hack.install import NAMESPACE, RELEASE, install
from hack.kubectl import Kubectl
from tests.api.actors import Actor, await_true
from tests.api.objects import approval_object, task_object

Person = Callable[[str], Actor]
RESTORER = "system:serviceaccount:velero:velero"
VALUES = {"admission": {"restorers": ["root", RESTORER]}}


@pytest.fixture(scope="module")
def restorers(cluster: Any, place: str) -> Iterator[None]:
    """The chart with two users whose tasks are copies; afterwards it is installed as it was before."""
    helm = str(tools.bin_folder() / "helm")
    asked = [helm, "get", "values", RELEASE, "--namespace", NAMESPACE, "--output", "json"]
    said = subprocess.run(asked, env=tools.environment(cluster.kubeconfig), capture_output=True, text=True, check=True)
    kubectl = Kubectl(cluster.kubeconfig, namespace=place)
    kubectl("create", "rolebinding", "restorer", "--clusterrole=aura-submitter", "--serviceaccount=velero:velero")
    install(cluster.kubeconfig, values=VALUES)
    copied = task_object("copied")
    create = ("create", "--dry-run=server", "--output=jsonpath={.spec.desired}", f"--as={RESTORER}", "--filename=-")
    await_true(lambda: kubectl.run(*create, stdin=copied).stdout == "Pause", "the new values act")
    yield
    install(cluster.kubeconfig, values=json.loads(said.stdout) or {})


@pytest.fixture(scope="module")
def no_mutation(restorers: None, cluster: Any, place: str) -> Iterator[None]:
    """The same server without its mutating policies, as an older one would be."""
    kubectl = Kubectl(cluster.kubeconfig, namespace=place)
    kubectl("delete", "mutatingadmissionpolicybinding", "aura-decision", "aura-task-stamp")
    create = ("create", "--dry-run=server", "--filename=-")
    await_true(
        lambda: "spec.requester: Required" in kubectl.run(*create, stdin=task_object("unstamped")).stderr,
        "tasks aren't stamped any more",
    )
    forged = approval_object("unfiled", decision={"approved": True})
    await_true(lambda: "was not filed" in kubectl.run(*create, stdin=forged).stderr, "votes aren't filed any more")
    yield
    install(cluster.kubeconfig, values=VALUES)
    await_true(lambda: probe.REFUSAL in kubectl.run(*create, stdin=forged).stderr, "votes are filed again")


def test_a_restored_task_starts_paused_until_a_person_resumes_it(
    restorers: None, acting_as: Callable[[str], Actor], person: Person, admin: Actor, fresh: str
) -> None:
    acting_as(RESTORER).create(task_object(fresh, desired="Run"))
    assert admin.get("at", fresh)["spec"]["desired"] == "Pause"
    person("alice").patch("at", fresh, {"spec": {"desired": "Run"}})
    person("alice").create(task_object(f"{fresh}-own"))
    assert admin.get("at", f"{fresh}-own")["spec"]["desired"] == "Run"


def test_without_stamps_a_restorer_has_to_say_pause_itself(
    no_mutation: None, acting_as: Callable[[str], Actor], fresh: str
) -> None:
    restored = task_object(fresh, requester=RESTORER)
    assert "a restored task starts with spec.desired Pause" in acting_as(RESTORER).refused(
        "create", "-f-", stdin=restored
    )
    acting_as(RESTORER).create(task_object(fresh, requester=RESTORER, desired="Pause"))


def test_without_stamps_everybody_names_himself(no_mutation: None, person: Person, admin: Actor, fresh: str) -> None:
    alice = person("alice")
    assert "spec.requester: Required" in alice.refused("create", "-f-", stdin=task_object(fresh))
    said = alice.refused("create", "-f-", stdin=task_object(fresh, requester="bob"))
    assert "spec.requester is the user who creates the task: write alice" in said
    assert "write admin" in admin.refused("create", "-f-", stdin=task_object(fresh, requester="alice"))
    for words in ({"id": "1", "text": "a"}, {"id": "1", "text": "a", "by": "bob"}):
        said = alice.refused("create", "-f-", stdin=task_object(fresh, requester="alice", steering=[words]))
        assert "you steer as yourself: write spec.steering[].by: alice" in said
    mine = {"id": "1", "text": "a", "by": "alice"}
    alice.create(task_object(fresh, requester="alice", steering=[mine]))
    person("bob").patch("at", fresh, {"spec": {"steering": [mine, {"id": "2", "text": "b", "by": "bob"}]}})


@pytest.mark.behaviour(15)
def test_without_filing_a_vote_is_written_under_the_own_name(
    no_mutation: None, person: Person, admin: Actor, approval: str
) -> None:
    said = person("bob").refused_decision(approval, approved=True)
    assert "write your vote to spec.decisions.<your user name> instead" in said
    vote = {"approved": True, "reason": "ok"}
    forged = person("bob").refused_patch("aa", approval, {"spec": {"decisions": {"carol": vote}}})
    assert "you can only decide as yourself, and you are bob" in forged
    person("bob").patch("aa", approval, {"spec": {"decisions": {"bob": vote}}})
    person("bob").patch("aa", approval, {"spec": {"decisions": {"bob": vote}}})
    assert admin.get("aa", approval)["spec"]["decisions"] == {"bob": vote}
    other = {"approved": False}
    assert "a decision is final" in person("bob").refused_patch("aa", approval, {"spec": {"decisions": {"bob": other}}})
