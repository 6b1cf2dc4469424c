"""A namespace with people and service accounts in it, and objects to begin with. Owns no assertion about behaviour."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubectl import Kubectl
from tests.api.actors import CONTROLLER, ODD_USER, WORKER, Actor, await_true
from tests.api.bindings import bind_components, bind_people
from tests.api.objects import approval_object, task_object


@pytest.fixture(scope="session")
def place(cluster: Any) -> Iterator[str]:
    """The namespace of all tests here, with the roles of the chart bound in it."""
    kubectl, name = Kubectl(cluster.kubeconfig), "api-tests"
    kubectl("create", "namespace", name)
    bind_components(kubectl, name)
    bind_people(kubectl, name)
    asked = ("auth", "can-i", "patch", "auraapprovals", f"--namespace={name}", f"--as={ODD_USER}")
    await_true(lambda: kubectl.run(*asked).returncode == 0, "the roles are in force")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def admin(cluster: Any, place: str) -> Actor:
    return Actor(Kubectl(cluster.kubeconfig, namespace=place))


@pytest.fixture
def acting_as(cluster: Any, place: str) -> Callable[[str], Actor]:
    """Any user by name, service accounts included, through the admin's right to impersonate."""
    return lambda user: Actor(Kubectl(cluster.kubeconfig, namespace=place), user=user)


@pytest.fixture
def worker(acting_as: Callable[[str], Actor]) -> Actor:
    return acting_as(WORKER)


@pytest.fixture
def controller(acting_as: Callable[[str], Actor]) -> Actor:
    return acting_as(CONTROLLER)


@pytest.fixture
def person(place: str, user_kubeconfig: Callable[[str], Path]) -> Callable[[str], Actor]:
    """A person with a client certificate of her own: alice (sre), bob and carol (sre-oncall), mallory."""
    return lambda name: Actor(Kubectl(user_kubeconfig(name), namespace=place))


_numbers = itertools.count(1)


@pytest.fixture
def fresh() -> str:
    """A name that no other test has."""
    return f"t{next(_numbers)}"


@pytest.fixture
def approval(worker: Actor, fresh: str) -> str:
    """A pending AuraApproval: alice asked, alice, bob, carol and the odd user may decide, four eyes, one vote."""
    worker.create(approval_object(fresh))
    return fresh


@pytest.fixture
def task(person: Callable[[str], Actor], fresh: str) -> str:
    """A fresh task of alice's."""
    person("alice").create(task_object(fresh))
    return fresh
