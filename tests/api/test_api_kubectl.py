"""What kubectl explains, shows and selects."""

from __future__ import annotations

from collections.abc import Iterator

from aura_operator.api import KINDS, Resource
from hack import crds
from tests.api.actors import Actor, Object
from tests.api.objects import approval_object, request_object, task_object


def test_kubectl_explains_every_field() -> None:
    """`kubectl explain` shows the schema's descriptions."""
    missing = [f"{kind.__name__}{path}" for kind in KINDS for path in _undescribed(_schema_of(kind))]
    assert missing == []


def _schema_of(kind: type[Resource]) -> Object:
    (version,) = crds.custom_resource_definition(kind)["spec"]["versions"]
    schema: Object = version["schema"]["openAPIV3Schema"]
    return schema


def _undescribed(schema: Object, path: str = "") -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        if f"{path}.{name}" == ".metadata":
            continue
        if not child.get("description"):
            yield f"{path}.{name}"
        yield from _undescribed(child.get("items", child), f"{path}.{name}")


def test_kubectl_explain_says_what_a_decision_is(admin: Actor) -> None:
    said = admin.does("explain", "aa.spec.decision")
    assert "admission files it in `decisions` under your name" in said
    assert "approved\t<boolean> -required-" in said


def test_kubectl_get_shows_what_matters_at_night(admin: Actor, worker: Actor, fresh: str) -> None:
    admin.create(task_object(fresh))
    words = f"approval {fresh}-9: k8s__delete_pod, to 03:40Z"
    worker.patch_status(
        "auratasks", fresh, {"phase": "Waiting", "summary": words, "progress": {"steps": 9, "turns": 3}}
    )
    heading, line = admin.does("get", "at", fresh).splitlines()
    assert heading.split() == ["NAME", "AGENT", "PHASE", "SUMMARY", "STEPS", "AGE"]
    assert line.startswith(fresh)
    assert words in line
    assert line.split()[-2] == "9"
    worker.create(approval_object(fresh))
    heading, line = admin.does("get", "aa", fresh).splitlines()
    assert heading.split() == ["NAME", "TASK", "KIND", "TOOL", "EFFECT", "VOTES", "EXPIRES", "REQUESTER"]
    assert line.split() == [fresh, "disk-7f3", "ToolCall", "k8s__delete_pod", "Once", "2126-11-29T03:40:00Z", "alice"]


def test_all_kinds_have_short_names_and_one_category(admin: Actor) -> None:
    listed = admin.does("api-resources", "--categories=aura", "--no-headers", "--output=wide")
    assert {(line.split()[0], line.split()[1]) for line in listed.splitlines()} == {
        ("auraagents", "ag"),
        ("auraapprovals", "aa"),
        ("auracheckpoints", "ac"),
        ("aurasessions", "as"),
        ("auratasks", "at"),
    }


def test_approvals_of_a_task_can_be_selected(admin: Actor, worker: Actor, fresh: str) -> None:
    worker.create(approval_object(fresh, request=request_object(task=fresh)))
    selected = ("get", "aa", f"--field-selector=spec.request.task={fresh},status.phase=Pending", "--output=name")
    assert admin.does(*selected).split() == [f"auraapproval.aura.mezmo.com/{fresh}"]
