"""Tasks on the real API server: what may change, who is named, what a status may say, and what can't be deleted."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.api.actors import COLLECTOR, WORKER, Actor, Object, await_true
from tests.api.objects import OWNER, approval_object, checkpoint_object, task_object

Person = Callable[[str], Actor]
PARENT = {"name": "p", "uid": "u", "run": "r", "call": 3}
UNRESOLVED = {"unresolved": [{"call": 14, "tool": "pay__refund", "since": "2026-11-29T03:00:00Z"}]}


# Who is named


def test_the_requester_is_stamped_over_whatever_was_written(person: Person, admin: Actor, fresh: str) -> None:
    person("alice").create(task_object(fresh, requester="bob"))
    admin.create(task_object(f"{fresh}-admin", requester="alice"))
    assert admin.get("at", fresh)["spec"]["requester"] == "alice"
    assert admin.get("at", f"{fresh}-admin")["spec"]["requester"] == "admin"


def test_who_steers_is_stamped_word_by_word(person: Person, admin: Actor, fresh: str) -> None:
    person("alice").create(task_object(fresh, steering=[{"id": "1", "text": "look at db-0", "by": "bob"}]))
    word = {"op": "add", "path": "/spec/steering/-", "value": {"id": "2", "text": "and at db-1", "by": "alice"}}
    person("bob").does("patch", "at", fresh, "--type=json", "--patch", json.dumps([word]))
    said = [(word["by"], word["text"]) for word in admin.get("at", fresh)["spec"]["steering"]]
    assert said == [("alice", "look at db-0"), ("bob", "and at db-1")]


def test_the_first_word_can_be_appended_too(person: Person, admin: Actor, task: str) -> None:
    word = {"op": "add", "path": "/spec/steering/-", "value": {"id": "1", "text": "stop"}}
    person("bob").does("patch", "at", task, "--type=json", "--patch", json.dumps([word]))
    assert admin.get("at", task)["spec"]["steering"] == [{"id": "1", "text": "stop", "by": "bob"}]


def test_a_file_that_is_applied_again_keeps_its_stamps(person: Person, admin: Actor, fresh: str) -> None:
    manifest = task_object(fresh, steering=[{"id": "1", "text": "look at db-0"}])
    person("alice").does("apply", "--filename=-", stdin=manifest)
    manifest["spec"]["priority"] = 5
    person("bob").does("apply", "--filename=-", stdin=manifest)
    spec = admin.get("at", fresh)["spec"]
    assert (spec["priority"], spec["requester"], spec["steering"][0]["by"]) == (5, "alice", "alice")


def test_only_the_operator_creates_children_and_names_their_requester(
    admin: Actor, acting_as: Callable[[str], Actor], person: Person, fresh: str
) -> None:
    child = task_object(fresh, requester="alice", parent=PARENT)
    assert "only the operator creates children" in person("alice").refused("create", "-f-", stdin=child)
    admin.does("create", "rolebinding", fresh, "--clusterrole=aura-submitter", f"--user={WORKER}")
    acting_as(WORKER).create(child)
    assert admin.get("at", fresh)["spec"]["requester"] == "alice"


@pytest.mark.parametrize(
    "change",
    [
        {"finalizers": ["example.com/held"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_a_task_is_tied_to_belongs_to_the_operator(
    person: Person, acting_as: Callable[[str], Actor], admin: Actor, task: str, change: Object
) -> None:
    said = person("alice").refused_patch("at", task, {"metadata": change})
    assert "owner references and finalizers of a task belong to the operator" in said
    person("alice").patch("at", task, {"metadata": {"labels": {"team": "db"}}})
    admin.does("create", "rolebinding", f"{task}-gc", "--clusterrole=aura-submitter", f"--user={COLLECTOR}")
    # Only tried: with an owner that doesn't exist the task would be collected.
    patch = ("patch", "at", task, "--dry-run=server", "--type=merge", "--patch", json.dumps({"metadata": change}))
    acting_as(COLLECTOR).does(*patch)


# What may change


@pytest.mark.parametrize(
    "change",
    [
        {"input": "something else"},
        {"agentRef": {"name": "other"}},
        {"sessionRef": {"name": "chat"}},
        {"sessionRef": None},
        {"activeDeadlineSeconds": 120},
        {"activeDeadlineSeconds": None},
        {"requester": "bob"},
        {"parent": PARENT},
    ],
    ids=json.dumps,
)
def test_what_was_asked_for_never_changes(person: Person, admin: Actor, fresh: str, change: Object) -> None:
    first = {"sessionRef": {"name": "talk"}, "activeDeadlineSeconds": 60}
    person("alice").create(task_object(fresh, **first))
    for actor in (person("alice"), admin):
        said = actor.refused_patch("at", fresh, {"spec": change})
        assert "only desired, steering, priority and ttlSecondsAfterFinished of a task may change" in said


def test_nothing_is_added_where_nothing_was(person: Person, task: str) -> None:
    for change in ({"sessionRef": {"name": "talk"}}, {"activeDeadlineSeconds": 60}, {"parent": PARENT}):
        assert "may change" in person("alice").refused_patch("at", task, {"spec": change})


def test_the_spec_can_not_be_wiped(person: Person, admin: Actor, task: str) -> None:
    for actor in (person("alice"), admin):
        assert "spec: Required value" in actor.refused_patch("at", task, {"spec": None})


@pytest.mark.parametrize(
    "change", [{"desired": "Pause"}, {"priority": -7}, {"ttlSecondsAfterFinished": 60}], ids=lambda c: next(iter(c))
)
def test_what_is_wanted_of_it_may_change(person: Person, task: str, change: Object) -> None:
    person("alice").patch("at", task, {"spec": change})


def test_pause_is_taken_back_and_cancel_never(person: Person, task: str) -> None:
    for desired in ("Pause", "Run", "Cancel"):
        person("alice").patch("at", task, {"spec": {"desired": desired}})
    for other in ("Run", "Pause", None):
        said = person("alice").refused_patch("at", task, {"spec": {"desired": other}})
        assert "a cancelled task stays cancelled" in said


@pytest.mark.parametrize(
    "words",
    [
        [],
        None,
        [{"id": "2", "text": "b"}, {"id": "1", "text": "a"}],
        [{"id": "1", "text": "changed"}, {"id": "2", "text": "b"}],
        [{"id": "1", "text": "a", "by": "bob"}, {"id": "2", "text": "b"}],
    ],
    ids=["emptied", "taken away", "in another order", "other words", "by another"],
)
def test_steering_is_append_only(person: Person, fresh: str, words: object) -> None:
    said = [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}]
    person("alice").create(task_object(fresh, steering=said))
    refusal = person("alice").refused_patch("at", fresh, {"spec": {"steering": words}})
    assert "steering is append-only" in refusal
    person("alice").patch("at", fresh, {"spec": {"steering": [*said, {"id": "3", "text": "c"}]}})


def test_each_word_has_its_own_id(person: Person, fresh: str) -> None:
    twice = task_object(fresh, steering=[{"id": "1", "text": "a"}, {"id": "1", "text": "b"}])
    assert "ids of steering are unique" in person("alice").refused("create", "-f-", stdin=twice)


def test_a_child_has_no_session(admin: Actor, fresh: str) -> None:
    child = task_object(fresh, parent=PARENT, sessionRef={"name": "talk"})
    assert "a child task has no session" in admin.refused("create", "-f-", stdin=child)


# What a status may say


def test_a_fresh_task_is_claimable_at_once(admin: Actor, task: str) -> None:
    assert admin.get("at", task)["status"] == {"phase": "Pending", "epoch": 0, "recoveries": 0}
    assert task in admin.does("get", "at", "--field-selector=status.phase=Pending", "--output=name")


def test_the_owner_can_be_selected(worker: Actor, admin: Actor, task: str) -> None:
    worker.patch_status("auratasks", task, {"phase": "Running", "epoch": 1, "owner": {**OWNER, "worker": task}})
    selected = admin.does("get", "at", f"--field-selector=status.owner.worker={task}", "--output=name")
    assert selected.split() == [f"auratask.aura.mezmo.com/{task}"]


def test_the_epoch_never_falls(worker: Actor, task: str) -> None:
    worker.patch_status("auratasks", task, {"epoch": 5})
    assert "epoch never falls" in worker.refused_status_patch("auratasks", task, {"epoch": 4})
    assert "epoch never falls" in worker.refused_status_patch("auratasks", task, {"epoch": None})
    worker.patch_status("auratasks", task, {"epoch": 5, "summary": "same"})


@pytest.mark.parametrize("phase", ["Pending", "Waiting", "Succeeded", "Failed", "Cancelled"])
def test_a_task_has_an_owner_if_and_only_if_it_runs(worker: Actor, task: str, phase: str) -> None:
    words = "a task has an owner if, and only if, it is Running"
    assert words in worker.refused_status_patch("auratasks", task, {"phase": phase, "owner": OWNER})
    assert words in worker.refused_status_patch("auratasks", task, {"phase": "Running"})
    worker.patch_status("auratasks", task, {"phase": "Running", "owner": OWNER})
    worker.patch_status("auratasks", task, {"phase": phase, "owner": None})


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Cancelled"])
def test_a_finished_task_stays_as_it_ended(worker: Actor, admin: Actor, task: str, phase: str) -> None:
    worker.patch_status("auratasks", task, {"phase": phase, "reason": "Done", "result": {"text": "42"}})
    for change in (
        {"phase": "Pending"},
        {"phase": "Running", "owner": OWNER},
        {"reason": "Another"},
        {"reason": None},
        {"result": {"text": "43"}},
        {"result": None},
    ):
        for actor in (worker, admin):
            said = actor.refused_status_patch("auratasks", task, change)
            assert "a finished task keeps its phase, reason and result" in said
    worker.patch_status("auratasks", task, {"summary": "may still be worded better"})


@pytest.mark.parametrize(
    "result",
    [{}, {"text": "a", "ref": "b"}, {"ref": "a", "secretRef": "b"}, {"sha256": "0" * 64}],
    ids=["empty", "text and ref", "ref and secretRef", "neither"],
)
def test_a_result_is_exactly_one_thing(worker: Actor, task: str, result: Object) -> None:
    said = worker.refused_status_patch("auratasks", task, {"result": result})
    assert "exactly one of text, ref and secretRef" in said
    worker.patch_status("auratasks", task, {"result": {"ref": "a", "sha256": "0" * 64, "bytes": 3}})


def test_the_largest_journal_that_is_ever_inline_fits(worker: Actor, task: str) -> None:
    entries = ["x" * 16384] + ["é" * 32] * 511
    journal = {"schema": 1, "next": 512, "head": "0" * 64, "entries": entries}
    worker.patch_status("auratasks", task, {"journal": journal, "result": {"text": "x" * 65536}})


# Who may write what


def test_only_the_operator_writes_a_status(
    person: Person, admin: Actor, acting_as: Callable[[str], Actor], worker: Actor, task: str
) -> None:
    """A tenant who may do everything in his own namespace is still not the operator."""
    admin.does("create", "rolebinding", f"{task}-all", "--clusterrole=cluster-admin", "--user=tenant")
    said = acting_as("tenant").refused_status_patch("auratasks", task, {"phase": "Succeeded"})
    assert "only the operator may write auratasks/status" in said
    assert "cannot patch resource" in person("alice").refused_status_patch("auratasks", task, {"epoch": 1})
    worker.patch_status("auratasks", task, {"summary": "mine"})


# Deleting


@pytest.mark.behaviour(33)
def test_a_task_with_unresolved_effects_is_not_deleted_by_mistake(
    person: Person, worker: Actor, admin: Actor, task: str
) -> None:
    worker.patch_status("auratasks", task, UNRESOLVED)
    for actor in (person("alice"), admin):
        said = actor.refused("delete", "at", task)
        assert "pay__refund, call 14" in said
        assert "annotate it with aura.mezmo.com/forget-unresolved=true" in said
    person("alice").does("annotate", "at", task, "aura.mezmo.com/forget-unresolved=yes")
    assert "may or may not have happened" in person("alice").refused("delete", "at", task)
    person("alice").does("annotate", "--overwrite", "at", task, "aura.mezmo.com/forget-unresolved=true")
    person("alice").does("delete", "at", task)


@pytest.mark.behaviour(33)
def test_all_at_once_is_refused_like_one_at_a_time(person: Person, worker: Actor, task: str) -> None:
    person("alice").does("label", "at", task, "batch=doomed")
    worker.patch_status("auratasks", task, UNRESOLVED)
    assert "may or may not have happened" in person("alice").refused("delete", "at", "-l", "batch=doomed")


@pytest.mark.behaviour(33)
def test_what_a_task_owned_goes_with_it_and_the_name_is_free_again(
    person: Person, worker: Actor, admin: Actor, task: str
) -> None:
    uid = admin.get("at", task)["metadata"]["uid"]
    owner = {"apiVersion": "aura.mezmo.com/v1alpha1", "kind": "AuraTask", "name": task, "uid": uid}
    for value in (approval_object(f"{task}-1"), checkpoint_object(f"{task}-journal")):
        value["metadata"]["ownerReferences"] = [owner]
        worker.create(value)
    worker.patch_status("auratasks", task, {"epoch": 3, "summary": "old"})
    person("alice").does("delete", "at", task)
    gone = ("get", "aa/" + f"{task}-1", "ac/" + f"{task}-journal", "--ignore-not-found", "--output=name")
    await_true(lambda: admin.does(*gone) == "", "what the task owned is collected")
    person("alice").create(task_object(task))
    assert admin.get("at", task)["status"] == {"phase": "Pending", "epoch": 0, "recoveries": 0}


@pytest.mark.behaviour(33)
def test_a_namespace_can_still_be_deleted(admin: Actor, fresh: str) -> None:
    name = f"doomed-{fresh}"
    admin.does("create", "namespace", name)
    for value in (task_object(fresh), approval_object(fresh), checkpoint_object(fresh)):
        value["metadata"]["namespace"] = name
        admin.does("create", f"--namespace={name}", "-f-", stdin=value)
    patch = ["patch", "at", fresh, f"--namespace={name}", "--subresource=status", "--type=merge", "--patch"]
    admin.does(*patch, json.dumps({"status": UNRESOLVED}))
    admin.does("delete", "namespace", name, "--timeout=60s")
