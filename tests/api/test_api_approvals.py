"""Approvals on the real API server: who decides, and that it is once."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.actors import CONTROLLER, ODD_USER, OPERATOR_NAMESPACE, WORKER, Actor, Object
from tests.api.objects import approval_object

Person = Callable[[str], Actor]
NO = {"approved": False, "reason": "not on a Friday"}


# Who decides


@pytest.mark.behaviour(15)
@pytest.mark.parametrize("user", ["bob", "carol"])
def test_an_allowed_person_approves_by_one_patch(person: Person, admin: Actor, approval: str, user: str) -> None:
    person(user).decide(approval, approved=True, reason="INC-42")
    spec = admin.get("auraapproval", approval)["spec"]
    assert spec["decisions"] == {user: {"approved": True, "reason": "INC-42"}}
    assert "decision" not in spec


@pytest.mark.behaviour(15)
def test_a_user_name_may_hold_any_sign(acting_as: Callable[[str], Actor], admin: Actor, approval: str) -> None:
    acting_as(ODD_USER).decide(approval, approved=True)
    assert admin.get("auraapproval", approval)["spec"]["decisions"] == {ODD_USER: {"approved": True}}


@pytest.mark.behaviour(15)
def test_somebody_who_is_not_an_approver_is_refused(person: Person, approval: str) -> None:
    said = person("mallory").refused_decision(approval, approved=True)
    assert "you are not one of the approvers; they are: users [alice, oidc:team/a~b], groups [sre-oncall]" in said


@pytest.mark.behaviour(15)
def test_a_cluster_admin_who_is_not_an_approver_is_refused(admin: Actor, approval: str) -> None:
    assert "you are not one of the approvers" in admin.refused_decision(approval, approved=True)


@pytest.mark.behaviour(15)
def test_the_requester_does_not_decide_under_four_eyes(person: Person, approval: str) -> None:
    assert "four eyes" in person("alice").refused_decision(approval, approved=True)


@pytest.mark.behaviour(15)
def test_without_four_eyes_the_requester_may_decide(person: Person, worker: Actor, fresh: str) -> None:
    worker.create(approval_object(fresh, involved=[]))
    person("alice").decide(fresh, approved=True)


@pytest.mark.behaviour(15)
@pytest.mark.parametrize("account", [WORKER, CONTROLLER, f"system:serviceaccount:{OPERATOR_NAMESPACE}:default"])
def test_the_operator_never_decides(
    cluster_admin_as: Callable[[str], Actor], worker: Actor, fresh: str, account: str
) -> None:
    worker.create(approval_object(fresh, approvers={"users": [account], "groups": ["system:authenticated"]}))
    assert "the operator never decides" in cluster_admin_as(account).refused_decision(fresh, approved=True)


@pytest.fixture
def cluster_admin_as(acting_as: Callable[[str], Actor], admin: Actor) -> Callable[[str], Actor]:
    """An account that RBAC lets do everything here, so that only admission can refuse."""

    def actor(account: str) -> Actor:
        namespace, name = account.split(":")[2:]
        admin.run(
            "create",
            "rolebinding",
            f"all-{name}",
            "--clusterrole=aura-approver",
            f"--serviceaccount={namespace}:{name}",
        )
        return acting_as(account)

    return actor


@pytest.mark.behaviour(15)
def test_nobody_votes_under_another_name(person: Person, admin: Actor, approval: str) -> None:
    forged = {"spec": {"decisions": {"carol": {"approved": True}}}}
    assert "you can only decide as yourself, and you are bob" in person("bob").refused_patch("aa", approval, forged)
    assert "you can only decide as yourself" in admin.refused_patch("aa", approval, forged)


@pytest.mark.behaviour(15)
def test_an_own_vote_may_be_written_where_it_ends_up(person: Person, admin: Actor, approval: str) -> None:
    person("bob").patch("aa", approval, {"spec": {"decisions": {"bob": {"approved": True}}}})
    assert admin.get("aa", approval)["spec"]["decisions"] == {"bob": {"approved": True}}


# Once


@pytest.mark.behaviour(15)
def test_the_same_vote_again_changes_nothing(person: Person, admin: Actor, approval: str) -> None:
    person("bob").decide(approval, approved=True, reason="ok")
    before = admin.get("aa", approval)["metadata"]["resourceVersion"]
    person("bob").decide(approval, approved=True, reason="ok")
    assert admin.get("aa", approval)["metadata"]["resourceVersion"] == before


@pytest.mark.behaviour(15)
def test_the_same_vote_again_is_accepted_after_the_approval_is_settled(
    person: Person, controller: Actor, approval: str
) -> None:
    person("bob").decide(approval, approved=True)
    controller.patch_status("auraapprovals", approval, {"phase": "Approved", "votes": "1/1"})
    person("bob").decide(approval, approved=True)


@pytest.mark.behaviour(15)
@pytest.mark.parametrize("second", [NO, {"approved": True, "reason": "another"}], ids=["no", "another reason"])
def test_a_second_and_different_vote_is_refused(person: Person, approval: str, second: Object) -> None:
    person("bob").decide(approval, approved=True, reason="ok")
    assert "a decision is final" in person("bob").refused_decision(approval, **second)


@pytest.mark.behaviour(15)
@pytest.mark.parametrize(
    "change",
    [{"decisions": None}, {"decisions": {"bob": None}}, {"decisions": {"bob": {"approved": False}}}],
    ids=["all taken away", "own taken away", "overwritten"],
)
def test_a_vote_is_not_taken_back(person: Person, approval: str, change: Object) -> None:
    person("bob").decide(approval, approved=True)
    assert "a decision is final" in person("bob").refused_patch("aa", approval, {"spec": change})


@pytest.mark.behaviour(15)
@pytest.mark.parametrize("phase", ["Denied", "Expired", "Withdrawn"])
def test_a_settled_approval_takes_no_votes(person: Person, controller: Actor, approval: str, phase: str) -> None:
    controller.patch_status("auraapprovals", approval, {"phase": phase})
    said = person("bob").refused_decision(approval, approved=True)
    assert f"this approval is already settled: {phase}" in said


@pytest.mark.behaviour(17)
def test_of_two_who_decide_at_once_one_stands(person: Person, worker: Actor, admin: Actor, fresh: str) -> None:
    for attempt in range(5):
        name = f"{fresh}-{attempt}"
        worker.create(approval_object(name))
        votes = {"bob": {"approved": True, "reason": "yes"}, "carol": {"approved": False, "reason": "no"}}
        with ThreadPoolExecutor() as pool:
            runs = {
                user: pool.submit(
                    person(user).run,
                    "patch",
                    "aa",
                    name,
                    "--type=merge",
                    "-p",
                    json.dumps({"spec": {"decision": vote}}),
                )
                for user, vote in votes.items()
            }
        (winner,) = [user for user, run in runs.items() if run.result().returncode == 0]
        (loser,) = set(votes) - {winner}
        assert "this has been decided already" in runs[loser].result().stderr
        assert admin.get("aa", name)["spec"]["decisions"] == {winner: votes[winner]}


@pytest.mark.behaviour(23)
def test_a_quorum_is_as_many_patches_and_not_one_more(
    person: Person, acting_as: Callable[[str], Actor], worker: Actor, admin: Actor, fresh: str
) -> None:
    worker.create(approval_object(fresh, quorum=2))
    person("bob").decide(fresh, approved=True)
    person("carol").decide(fresh, approved=True)
    assert "this has been decided already" in acting_as(ODD_USER).refused_decision(fresh, approved=True)
    assert set(admin.get("aa", fresh)["spec"]["decisions"]) == {"bob", "carol"}


@pytest.mark.behaviour(23)
def test_one_denial_ends_it(person: Person, worker: Actor, fresh: str) -> None:
    worker.create(approval_object(fresh, quorum=3))
    person("bob").decide(fresh, **NO)
    assert "this has been decided already" in person("carol").refused_decision(fresh, approved=True)
