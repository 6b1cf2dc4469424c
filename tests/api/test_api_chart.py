"""The chart: what it renders is valid, nobody gets more rights than needed, and nothing risky is silent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from kubernetes import client, config

from hack.cluster import tools
from hack.install import CHART
from hack.kubectl import Kubectl
from tests.api.actors import CONTROLLER, OPERATOR_NAMESPACE, WORKER, Actor, Object, await_true
from tests.api.bindings import bind_components

VARIANTS: dict[str, Object] = {
    "defaults": {},
    "mutating": {"admission": {"mode": "mutating", "restorers": ["system:serviceaccount:velero:velero", "root"]}},
    "validating": {"admission": {"mode": "validating", "restorers": ["system:serviceaccount:velero:velero"]}},
    "cluster-wide": {"scope": {"clusterWide": True}},
    "namespaces": {"scope": {"namespaces": ["default", "kube-public"]}},
    "bare": {
        "crds": {"install": False, "keep": False},
        "rbac": {"aggregate": False},
        "flowSchema": {"enabled": False},
    },
    "other accounts": {
        "global": {"anything": "goes"},
        "controller": {"serviceAccount": {"name": "c", "annotations": {"a": "b"}}},
        "worker": {"serviceAccount": {"name": "w"}},
    },
}


def helm(*arguments: str, values: Object | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(tools.bin_folder() / "helm"), *arguments, "--values", "-"],
        input=json.dumps(values or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def rendered(values: Object | None = None, *arguments: str) -> list[Object]:
    done = helm("template", "aura", str(CHART), "--namespace", OPERATOR_NAMESPACE, *arguments, values=values)
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def named(objects: list[Object], kind: str) -> dict[str, Any]:
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == kind}


# Rendering


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS.keys())
def test_whatever_the_values_the_server_accepts_what_comes_out(kubectl: Kubectl, values: Object) -> None:
    assert helm("lint", "--strict", str(CHART), values=values).returncode == 0
    objects = {"apiVersion": "v1", "kind": "List", "items": rendered(values)}
    apply = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename=-")
    done = Kubectl(kubectl.kubeconfig).run(*apply, stdin=objects)
    assert done.returncode == 0, done.stderr


def test_the_server_finds_nothing_wrong_with_the_expressions(admin: Actor) -> None:
    """kube-controller-manager checks the types of all policies against the CRDs, and writes what it finds."""

    def checked() -> list[Object]:
        found = json.loads(admin.does("get", "validatingadmissionpolicies", "--output=json"))["items"]
        return [item for item in found if item["metadata"]["name"].startswith("aura-")]

    def done(policy: Object) -> bool:
        return bool(policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"])

    await_true(lambda: all(map(done, checked())), "the policies are checked")
    assert {policy["metadata"]["name"]: policy["status"]["typeChecking"] for policy in checked()} == {
        name: {} for name in named(rendered(), "ValidatingAdmissionPolicy")
    }


@pytest.mark.parametrize(
    "values",
    [
        {"crd": {}},
        {"admission": {"mode": "off"}},
        {"admission": {"restorers": ["it's"]}},
        {"scope": {"namespaces": ["Not A Namespace"]}},
        {"worker": {"serviceAccount": {"name": ""}}},
        {"worker": {"replicas": 2}},
        {"gateway": {"serviceAccount": {"name": "g"}}},
    ],
    ids=json.dumps,
)
def test_a_value_that_means_nothing_is_refused(values: Object) -> None:
    done = helm("template", "aura", str(CHART), values=values)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr


def test_crds_and_policies_outlive_the_release() -> None:
    objects = rendered()
    for item in objects:
        kept = item["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
        assert kept == (item["kind"] == "CustomResourceDefinition" or "AdmissionPolicy" in item["kind"]), item["kind"]
    unkept = rendered({"crds": {"keep": False}})
    assert all("annotations" not in crd["metadata"] for crd in named(unkept, "CustomResourceDefinition").values())


def test_crds_can_be_left_to_somebody_else() -> None:
    assert len(named(rendered(), "CustomResourceDefinition")) == 5
    assert named(rendered({"crds": {"install": False}}), "CustomResourceDefinition") == {}


def test_servers_without_mutating_policies_get_none() -> None:
    newer, older = rendered(None, "--kube-version=1.36.0"), rendered(None, "--kube-version=1.35.9")
    assert set(named(newer, "MutatingAdmissionPolicy")) == {"aura-decision", "aura-task-stamp"}
    assert named(older, "MutatingAdmissionPolicy") == {}
    assert named(older, "ValidatingAdmissionPolicy").keys() == named(newer, "ValidatingAdmissionPolicy").keys()
    assert named(rendered({"admission": {"mode": "validating"}}), "MutatingAdmissionPolicyBinding") == {}


def test_every_policy_fails_closed_and_is_bound() -> None:
    objects = rendered()
    for kind in ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"):
        policies, bindings = named(objects, kind), named(objects, f"{kind}Binding")
        assert {policy["spec"]["failurePolicy"] for policy in policies.values()} == {"Fail"}
        assert {binding["spec"]["policyName"] for binding in bindings.values()} == set(policies)
    validating = named(objects, "ValidatingAdmissionPolicyBinding").values()
    assert all(binding["spec"]["validationActions"] == ["Deny"] for binding in validating)


def test_rights_are_given_only_where_agents_run() -> None:
    default = rendered()
    bindings = named(default, "RoleBinding").values()
    assert {binding["metadata"]["namespace"] for binding in bindings} == {OPERATOR_NAMESPACE}
    assert named(default, "ClusterRoleBinding") == {}
    scoped = [item for item in rendered({"scope": {"namespaces": ["a", "b"]}}) if item["kind"] == "RoleBinding"]
    assert {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in scoped} == {
        (OPERATOR_NAMESPACE, "aura-operator"),
        ("a", "aura-controller"),
        ("b", "aura-controller"),
        ("a", "aura-worker"),
        ("b", "aura-worker"),
    }
    wide = rendered({"scope": {"clusterWide": True}})
    assert set(named(wide, "ClusterRoleBinding")) == {"aura-controller", "aura-worker"}
    assert set(named(wide, "RoleBinding")) == {"aura-operator"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"scope": {"clusterWide": True}}, "WARNING: scope.clusterWide lets workers read every Secret"),
        ({}, "WARNING: agents run in the operator's own namespace"),
        ({"admission": {"mode": "validating"}}, "WARNING: votes aren't filed"),
        ({"crds": {"keep": False}}, "WARNING: crds.keep is off"),
        ({"flowSchema": {"enabled": False}}, "WARNING: flowSchema.enabled is off"),
    ],
    ids=lambda value: value.split(":")[1][:30] if isinstance(value, str) else "",
)
def test_a_risky_value_is_not_silent(values: Object, words: str) -> None:
    assert words in notes(values)
    assert "WARNING" not in notes({"scope": {"namespaces": ["agents"]}})


def notes(values: Object) -> str:
    done = helm("install", "aura", str(CHART), "--namespace", OPERATOR_NAMESPACE, "--dry-run=client", values=values)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("NOTES:")[1]


# Rights, from both sides

MAY = {
    WORKER: """
        get auraagents; get,list,watch auratasks; patch auratasks/status;
        get,create auraapprovals; get,create auracheckpoints; get,create secrets;
        get,create controllerrevisions.apps; create events.events.k8s.io
    """,
    CONTROLLER: """
        get,list,watch auraagents; get,list,watch,delete auratasks; get,list,watch auraapprovals;
        patch auraagents/status; patch auratasks/status; patch auraapprovals/status; create events.events.k8s.io
    """,
}
MAY_IN_OPERATORS = "get,list,watch,create,patch,delete leases.coordination.k8s.io; operate auratasks"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "operate", "run-commands")
RESOURCES = (
    *("auraagents", "auratasks", "auraapprovals", "aurasessions", "auracheckpoints"),
    *("auraagents/status", "auratasks/status", "auraapprovals/status", "aurasessions/status"),
    *("controllerrevisions.apps", "secrets", "configmaps", "pods", "pods/exec", "serviceaccounts/token"),
    *("events.events.k8s.io", "leases.coordination.k8s.io", "roles.rbac.authorization.k8s.io"),
)


def parsed(rights: str) -> set[tuple[str, str]]:
    pairs = (part.split() for part in rights.split(";") if part.strip())
    return {(verb, resource) for verbs, resource in pairs for verb in verbs.split(",")}


@pytest.mark.parametrize("account", [WORKER, CONTROLLER], ids=lambda name: name.rsplit("-", 1)[1])
def test_an_account_has_the_rights_it_needs_and_no_other(
    reviews: Callable[..., Any], kubectl: Kubectl, namespace: str, account: str
) -> None:
    """Agents run in two namespaces (the release's own, and this test's) and not in `default`."""
    bind_components(Kubectl(kubectl.kubeconfig), namespace)
    await_true(lambda: ("patch", "auratasks/status") in reviews(CONTROLLER, namespace), "the roles are in force")
    assert reviews(account, namespace) == parsed(MAY[account])
    assert reviews(account, OPERATOR_NAMESPACE) == parsed(MAY[account]) | parsed(MAY_IN_OPERATORS)
    assert reviews(account, "default") == set()


@pytest.mark.parametrize(
    ("role", "rights"),
    [
        ("aura-viewer", ""),
        ("aura-submitter", "create,patch,delete auratasks; create,patch,delete aurasessions"),
        ("aura-approver", "patch auraapprovals"),
        ("aura-author", "create,update,patch,delete auraagents"),
    ],
)
def test_a_role_for_people_lets_them_change_one_thing(
    reviews: Callable[..., Any], admin: Actor, place: str, fresh: str, role: str, rights: str
) -> None:
    admin.does("create", "rolebinding", fresh, f"--clusterrole={role}", f"--user={fresh}")
    await_true(lambda: bool(reviews(fresh, place)), "the role is in force")
    changes = {(verb, resource) for verb, resource in reviews(fresh, place) if verb not in ("get", "list", "watch")}
    assert changes == parsed(rights)


@pytest.mark.parametrize(
    ("role", "verb", "resource"),
    [
        ("view", "get", "auracheckpoints"),
        ("edit", "create", "auratasks"),
        ("edit", "patch", "auraapprovals"),
        ("admin", "update", "auraagents"),
    ],
)
def test_the_roles_join_those_that_every_cluster_has(
    reviews: Callable[..., Any], admin: Actor, place: str, fresh: str, role: str, verb: str, resource: str
) -> None:
    admin.does("create", "rolebinding", fresh, f"--clusterrole={role}", f"--user={fresh}")
    await_true(lambda: bool(reviews(fresh, place)), "the role is in force")
    found = reviews(fresh, place)
    assert (verb, resource) in found
    assert not {right for right in found if right[0] in ("operate", "run-commands")}


@pytest.fixture
def reviews(cluster: Any, place: str) -> Callable[[str, str], set[tuple[str, str]]]:
    """Which of VERBS on RESOURCES a user has in a namespace, as the server's authorizer answers."""
    api = client.AuthorizationV1Api(config.new_client_from_config(str(cluster.kubeconfig)))  # type: ignore[no-untyped-call]

    def allowed(user: str, namespace: str, verb: str, name: str) -> bool:
        path, _, subresource = name.partition("/")
        resource, _, group = path.partition(".")
        attributes = client.V1ResourceAttributes(
            namespace=namespace,
            verb=verb,
            group=group or ("aura.mezmo.com" if resource.startswith("aura") else ""),
            resource=resource,
            subresource=subresource or None,
        )
        review = client.V1SubjectAccessReview(
            spec=client.V1SubjectAccessReviewSpec(user=user, resource_attributes=attributes)
        )
        status = api.create_subject_access_review(review).status
        return status is not None and bool(status.allowed)

    return lambda user, namespace: {
        (verb, name) for name in RESOURCES for verb in VERBS if allowed(user, namespace, verb, name)
    }


def test_lease_renewals_take_the_priority_of_leader_election(admin: Actor, acting_as: Callable[[str], Actor]) -> None:
    """The server says in a header which FlowSchema a request was counted under."""
    uid = admin.does("get", "flowschema", "aura-leases", "--output=jsonpath={.metadata.uid}")
    for account, ours in ((WORKER, True), (CONTROLLER, True), (f"system:serviceaccount:{OPERATOR_NAMESPACE}:x", False)):
        asked = ("get", "lease", "x", f"--namespace={OPERATOR_NAMESPACE}", "--v=8")
        said = acting_as(account).run(*asked).stderr.lower()
        assert "x-kubernetes-pf-flowschema-uid" in said
        assert (uid in said) == ours, account
