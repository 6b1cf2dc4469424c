"""Approvals on the real API server: under the terms that were asked for, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.api.actors import Actor, Object
from tests.api.objects import approval_object, request_object

Person = Callable[[str], Actor]
NO = {"approved": False, "reason": "not on a Friday"}


@pytest.fixture
def in_doubt(worker: Actor, fresh: str) -> str:
    """An approval that asks what became of a call; two have to agree."""
    worker.create(approval_object(fresh, request=request_object(kind="InDoubt"), quorum=2))
    return fresh


# The terms


@pytest.mark.behaviour(16)
@pytest.mark.parametrize(
    "change",
    [
        {"request": {"arguments": '{"name":"db-1"}'}},
        {"request": {"tool": "k8s__delete_namespace"}},
        {"request": {"digest": "sha256:" + "0" * 64}},
        {"request": {"toolSchemaDigest": "sha256:" + "0" * 64}},
        {"request": {"run": "another"}},
        {"request": {"arguments": None, "argumentsRef": {"kind": "Secret", "name": "other"}}},
        {"approvers": {"users": ["mallory"]}},
        {"approvers": {"groups": None}},
        {"quorum": 2},
        {"requester": "bob"},
        {"involved": []},
        {"involved": None},
        {"expiresAt": "2226-11-29T03:40:00Z"},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_the_terms_never_change_whoever_asks(admin: Actor, person: Person, approval: str, change: Object) -> None:
    for actor in (admin, person("bob")):
        assert "the terms of an approval never change" in actor.refused_patch("aa", approval, {"spec": change})


@pytest.mark.behaviour(16)
def test_the_spec_can_not_be_wiped(admin: Actor, person: Person, approval: str) -> None:
    for actor in (admin, person("bob")):
        assert "spec: Required value" in actor.refused_patch("aa", approval, {"spec": None})


@pytest.mark.behaviour(16)
@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"task": "other"}},
        {"finalizers": ["example.com/held"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_ties_an_approval_to_its_task_belongs_to_the_operator(
    admin: Actor, person: Person, approval: str, change: Object
) -> None:
    said = person("bob").refused_patch("aa", approval, {"metadata": change})
    assert "owner references, finalizers and labels of an approval belong to the operator" in said
    admin.patch("aa", approval, {"metadata": {"labels": {"seen": "yes"}}})  # an admin has the verb `operate`


def test_only_the_operator_asks(admin: Actor, worker: Actor, acting_as: Callable[[str], Actor], fresh: str) -> None:
    worker.create(approval_object(fresh))
    admin.does("create", "rolebinding", f"{fresh}-tenant", "--clusterrole=cluster-admin", "--user=tenant")
    said = acting_as("tenant").refused("create", "-f-", stdin=approval_object(f"{fresh}-forged"))
    assert "only the operator asks for approvals" in said


def test_an_approval_starts_undecided_even_for_the_operator(worker: Actor, admin: Actor, fresh: str) -> None:
    for spec in ({"decisions": {"bob": {"approved": True}}}, {"decision": {"approved": True}}):
        for actor in (worker, admin):
            said = actor.refused("create", "-f-", stdin=approval_object(fresh, **spec))
            assert "an approval starts undecided" in said


@pytest.mark.parametrize(
    ("request_changes", "words"),
    [
        ({"tool": None}, "ToolCall and InDoubt have tool, effect and digest"),
        ({"digest": None}, "ToolCall and InDoubt have tool, effect and digest"),
        ({"arguments": None}, "either arguments or argumentsRef"),
        ({"argumentsRef": {"kind": "Secret", "name": "s"}}, "either arguments or argumentsRef"),
        ({"kind": "Question"}, "a Question has a question"),
        ({"digest": "md5:00"}, "spec.request.digest"),
    ],
)
def test_a_request_is_complete(worker: Actor, fresh: str, request_changes: Object, words: str) -> None:
    assert words in worker.refused(
        "create", "-f-", stdin=approval_object(fresh, request=request_object(**request_changes))
    )


# What came of it


@pytest.mark.behaviour(23)
def test_not_even_the_operator_approves_without_a_quorum(
    person: Person, controller: Actor, worker: Actor, fresh: str
) -> None:
    worker.create(approval_object(fresh, quorum=2))
    words = "Approved needs a full quorum and no denial"
    assert words in controller.refused_status_patch("auraapprovals", fresh, {"phase": "Approved"})
    person("bob").decide(fresh, approved=True)
    assert words in controller.refused_status_patch("auraapprovals", fresh, {"phase": "Approved"})
    person("carol").decide(fresh, approved=True)
    controller.patch_status("auraapprovals", fresh, {"phase": "Approved", "votes": "2/2"})


def test_a_denial_never_becomes_an_approval(person: Person, controller: Actor, approval: str) -> None:
    person("bob").decide(approval, **NO)
    assert "no denial" in controller.refused_status_patch("auraapprovals", approval, {"phase": "Approved"})


@pytest.mark.parametrize(
    "change",
    [{"phase": "Pending"}, {"phase": "Denied"}, {"decidedAt": "2026-11-29T04:00:00Z"}, {"phase": None}],
    ids=["pending again", "denied", "another time", "no phase"],
)
def test_a_settled_approval_stays_settled(controller: Actor, approval: str, change: Object) -> None:
    controller.patch_status("auraapprovals", approval, {"phase": "Expired", "decidedAt": "2026-11-29T03:40:00Z"})
    assert "a settled approval stays settled" in controller.refused_status_patch("auraapprovals", approval, change)
    controller.patch_status("auraapprovals", approval, {"reason": "nobody answered by 2026-11-29T03:40:00Z"})


def test_the_reasons_of_the_largest_quorum_fit_into_one(controller: Actor, approval: str) -> None:
    controller.patch_status("auraapprovals", approval, {"phase": "Expired", "reason": "; ".join(["x" * 2048] * 16)})


# In doubt, and questions


@pytest.mark.behaviour(23)
def test_all_who_settle_a_call_in_doubt_make_the_same_choice(person: Person, controller: Actor, in_doubt: str) -> None:
    person("bob").decide(in_doubt, approved=True, choice="Retry")
    assert "must make the same choice" in person("carol").refused_decision(in_doubt, approved=True, choice="Done")
    person("carol").decide(in_doubt, approved=True, choice="Retry")
    said = controller.refused_status_patch("auraapprovals", in_doubt, {"phase": "Approved", "choice": "Done"})
    assert "the choice is that of those who decided" in said
    controller.patch_status("auraapprovals", in_doubt, {"phase": "Approved", "choice": "Retry"})


def test_a_yes_to_a_call_in_doubt_needs_a_choice_and_a_no_means_abort(person: Person, in_doubt: str) -> None:
    words = "a denial is Abort"
    assert words in person("bob").refused_decision(in_doubt, approved=True)
    assert words in person("bob").refused_decision(in_doubt, approved=False, choice="Retry")
    person("bob").decide(in_doubt, approved=False)


def test_a_choice_is_made_only_where_a_call_is_in_doubt(person: Person, approval: str) -> None:
    assert "only where a call is in doubt" in person("bob").refused_decision(approval, approved=True, choice="Done")


def test_a_question_takes_an_answer_and_nothing_else_does(
    person: Person, worker: Actor, fresh: str, approval: str
) -> None:
    asked = request_object(kind="Question", question="which region?")
    worker.create(approval_object(f"{fresh}-q", request=asked))
    words = "a question is answered with approved: true and an answer"
    assert words in person("bob").refused_decision(f"{fresh}-q", approved=True)
    assert words in person("bob").refused_decision(approval, approved=True, answer="eu")
    person("bob").decide(f"{fresh}-q", approved=True, answer="eu-west-1")
