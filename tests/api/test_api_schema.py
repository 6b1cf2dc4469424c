"""The CRDs say what the models say: every field of every kind goes to the real server and comes back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from aura_operator.api import KINDS, AuraAgent, AuraApproval, AuraCheckpoint, AuraSession, AuraTask, Resource
from aura_operator.api.approval import Decision
from aura_operator.api.schema import structural_schema
from aura_operator.core.entries import Choice
from hack import crds
from hack.cluster import CHECKOUT
from tests.api.actors import Actor, Object
from tests.api.objects import OWNER, agent_object, approval_object, checkpoint_object, request_object, task_object

T = "2026-11-29T03:00:00Z"
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "AllGood",
    "message": "ready",
    "lastTransitionTime": T,
    "observedGeneration": 1,
}

FULL_AGENT = agent_object(
    "full",
    model={
        "name": "openai-chat:gpt-5",
        "baseURL": "https://models.example/v1",
        "apiKeySecretRef": {"name": "key", "key": "token"},
        "settings": {"temperature": 0.5, "extra_body": {"deep": [1, "two", True]}},
        "timeoutSeconds": 60,
        "retries": 2,
    },
    systemPrompt="You look after databases.",
    mcpServers=[
        {
            "name": "k8s",
            "transport": "StreamableHTTP",
            "url": "http://mcp",
            "headersSecretRef": {"name": "token"},
            "timeoutSeconds": 30,
            "trustHints": True,
        },
        {
            "name": "shell",
            "transport": "Stdio",
            "command": "mcp",
            "args": ["-v"],
            "env": [{"name": "LANG", "value": "C"}],
            "timeoutSeconds": 30,
            "trustHints": False,
        },
    ],
    tools=[
        {
            "match": "k8s__*",
            "effect": "Idempotent",
            "approval": "Required",
            "timeoutSeconds": 60,
            "lookup": "k8s__find",
            "onInDoubt": "TellModel",
            "sensitive": True,
        }
    ],
    approvals={
        "approvers": {"users": ["bob"], "groups": ["oncall"]},
        "quorum": 2,
        "fourEyes": False,
        "expiresAfterSeconds": 60,
    },
    subAgents=[{"name": "db", "agentRef": {"name": "dba"}, "description": "knows databases"}],
    limits={"turns": 9, "tokens": 10000, "toolResultBytes": 2048, "recoveries": 3, "children": 1, "depth": 1},
) | {
    "status": {
        "observedGeneration": 1,
        "revision": "sre-1",
        "conditions": [CONDITION],
        "tools": [{"name": "k8s__x", "effect": "Once", "declared": False, "approval": "Required"}],
    }
}
FULL_TASK = task_object(
    "full",
    sessionRef={"name": "talk"},
    desired="Pause",
    steering=[{"id": "1", "text": "look at db-0", "by": "admin"}],
    priority=3,
    activeDeadlineSeconds=3600,
    ttlSecondsAfterFinished=60,
    requester="admin",
) | {
    "status": {
        "phase": "Running",
        "reason": "Claimed",
        "summary": "runs",
        "conditions": [CONDITION],
        "run": "run-1",
        "owner": {**OWNER, "endpoint": "10.0.0.1:8080", "streamKey": "k"},
        "epoch": 2,
        "agentRevision": "sre-1",
        "journal": {
            "schema": 1,
            "next": 7,
            "head": "ab",
            "entries": ['{"k":"claimed"}'],
            "sealed": {"name": "full-journal", "next": 6},
        },
        "waitingFor": [{"kind": kind, "name": "n", "until": T} for kind in ("Approval", "Timer", "Child", "Question")],
        "fired": ["n"],
        "unresolved": [{"call": 3, "tool": "pay__refund", "since": T}],
        "progress": {"steps": 4, "turns": 2, "at": T},
        "usage": {"requests": 2, "inputTokens": 300, "outputTokens": 40},
        "recoveries": 1,
        "lastEnd": {"worker": "w-1", "incarnation": "uid.0", "epoch": 1, "proof": "LeaseExpired", "at": T},
        "steering": {"consumed": 1},
        "result": {"ref": "full-result", "sha256": "0" * 64, "bytes": 70000},
        "trace": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
        "startedAt": T,
        "finishedAt": T,
    }
}
CHILD_TASK = task_object("child", requester="admin", parent={"name": "p", "uid": "u", "run": "r", "call": 3}) | {
    "status": {"phase": "Succeeded", "epoch": 1, "recoveries": 0, "result": {"secretRef": "s"}}
}
TEXT_TASK = task_object("text", requester="admin") | {
    "status": {"phase": "Failed", "reason": "Poisoned", "epoch": 1, "recoveries": 5, "result": {"text": "no"}}
}
FULL_APPROVAL = approval_object(
    "full",
    request=request_object(
        ask=1, toolSchemaDigest="sha256:" + "0" * 64, agentRevision="sre-1", notBefore=T, question="did it happen?"
    ),
) | {
    "status": {"phase": "Denied", "reason": "no", "votes": "0/1", "decidedAt": T, "choice": "Abort"},
}
STORED_APPROVAL = approval_object(
    "stored", request=request_object(arguments=None, argumentsRef={"kind": "Secret", "name": "full-arguments"})
)
FULL_CHECKPOINT = checkpoint_object(
    "full",
    type="Journal",
    encoding="GzipBase64",
    journal={"schema": 1, "first": 0, "next": 6, "headBefore": "a", "head": "b", "previous": ["older"]},
)
FULL_SESSION = {
    "apiVersion": "aura.mezmo.com/v1alpha1",
    "kind": "AuraSession",
    "metadata": {"name": "full"},
    "spec": {"agentRef": {"name": "sre"}},
    "status": {
        "conditions": [CONDITION],
        "active": {"task": "a", "uid": "1"},
        "queue": [{"task": "b", "uid": "2"}],
        "turns": [{"task": "z", "uid": "0", "outcome": "Aborted", "ref": "full-turn", "at": T}],
    },
}
SAMPLES: list[tuple[type[Resource], Object]] = [
    (AuraAgent, FULL_AGENT),
    (AuraTask, FULL_TASK),
    (AuraTask, CHILD_TASK),
    (AuraTask, TEXT_TASK),
    (AuraApproval, FULL_APPROVAL),
    (AuraApproval, STORED_APPROVAL),
    (AuraCheckpoint, FULL_CHECKPOINT),
    (AuraSession, FULL_SESSION),
]


@pytest.mark.parametrize(
    ("kind", "sample"),
    SAMPLES,
    ids=lambda value: value["metadata"]["name"] if isinstance(value, dict) else value.__name__,
)
def test_a_model_goes_to_the_server_and_comes_back(
    kind: type[Resource], sample: Object, admin: Actor, fresh: str
) -> None:
    """With strict validation, what the model writes is stored to the last field, and read as the same model."""
    sent = kind.from_object({**sample, "metadata": {"name": fresh}})
    created = admin.create(sent.to_object())
    if "status" in sample:
        stored = {**created, "status": sample["status"]}
        created = json.loads(
            admin.does("replace", "--subresource=status", "--validate=strict", "-o=json", "-f-", stdin=stored)
        )
    read = kind.from_object(created)
    for part in ("spec", "status"):
        assert getattr(read, part, None) == getattr(sent, part, None)
        assert _holds(created.get(part), sample.get(part))


def _holds(actual: Any, wanted: Any) -> bool:
    """Whether all of `wanted` is in `actual`, which may have defaults besides."""
    if isinstance(wanted, dict):
        return all(_holds(actual[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(actual) == len(wanted) and all(map(_holds, actual, wanted))
    return wanted is None or actual == wanted


def test_the_samples_leave_out_no_field() -> None:
    """So that a new field can't come without its way to the server being tried. (Votes come later, by patches.)"""
    seen = {"ApprovalSpec.decision", "ApprovalSpec.decisions", *(f"Decision.{name}" for name in Decision.model_fields)}
    for kind, sample in SAMPLES:
        _note(kind.from_object(sample), sample, seen)
    assert {field for kind in KINDS for field in _fields(kind)} - seen == set()


def _fields(model: type[BaseModel], done: tuple[type, ...] = ()) -> Iterator[str]:
    if model.__name__ == "ObjectMeta" or model in done:
        return
    for name, field in model.model_fields.items():
        if model not in KINDS or name in ("spec", "status"):
            yield f"{model.__name__}.{name}"
        for inner in _models(field.annotation):
            yield from _fields(inner, (*done, model))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _models(argument)


def _note(model: BaseModel, written: Object, seen: set[str]) -> None:
    for name, field in type(model).model_fields.items():
        json_name = field.alias or name
        if json_name not in written:
            continue
        seen.add(f"{type(model).__name__}.{name}")
        value, text = getattr(model, name), written[json_name]
        values = value if isinstance(value, tuple) else (value,)
        for inner, inner_text in zip(values, text if isinstance(value, tuple) else (text,), strict=True):
            if isinstance(inner, BaseModel):
                _note(inner, inner_text, seen)


@pytest.mark.parametrize(
    ("request_changes", "vote"),
    [
        ({}, Decision(approved=False, reason="not on a Friday")),
        ({"kind": "InDoubt"}, Decision(approved=True, choice=Choice.RETRY)),
        ({"kind": "Question", "question": "which?"}, Decision(approved=True, answer="eu-west-1")),
    ],
    ids=["a denial", "a choice", "an answer"],
)
def test_a_vote_is_read_as_it_was_cast(
    person: Callable[[str], Actor], worker: Actor, fresh: str, request_changes: Object, vote: Decision
) -> None:
    worker.create(approval_object(fresh, request=request_object(**request_changes)))
    person("bob").decide(fresh, **vote.to_object())
    assert AuraApproval.from_object(worker.get("auraapproval", fresh)).spec.decisions == {"bob": vote}


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (task_object("x", inputt="typo"), 'unknown field "spec.inputt"'),
        (task_object("x", input=""), "spec.input"),
        (task_object("x", input="x" * 32769), "Too long"),
        (task_object("x" * 181), "metadata.name"),
        (task_object("x", priority=101), "less than or equal to 100"),
        (task_object("x", priority=-101), "greater than or equal to -100"),
        (task_object("x", desired="Stop"), "supported values"),
        (task_object("x", steering=[{"id": str(i), "text": "x"} for i in range(33)]), "must have at most 32 items"),
        (task_object("x", steering=[{"id": "1", "text": "x" * 2049}]), "Too long"),
        (agent_object("x", limits={"toolResultBytes": 163841}), "less than or equal to 163840"),
        (agent_object("x", limits={"turns": 0}), "greater than or equal to 1"),
        (agent_object("x", model={"name": "no-provider"}), "spec.model.name"),
        (agent_object("x", tools=[{"match": "*", "effect": "Twice"}]), "supported values"),
        (approval_object("x", request=request_object(arguments="x" * 131073)), "Too long"),
        (approval_object("x", quorum=17), "less than or equal to 16"),
        (approval_object("x", expiresAt="tomorrow"), "spec.expiresAt"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_out_of_bounds_is_refused_by_name(admin: Actor, manifest: Object, words: str) -> None:
    assert words in admin.refused("create", "--dry-run=server", "-f-", stdin=manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        task_object("x", input="x" * 32768, priority=100),
        task_object("x" * 180),
        task_object("x", steering=[{"id": str(i), "text": "x" * 2048} for i in range(32)]),
        agent_object("x", limits={"toolResultBytes": 163840}),
        approval_object("x" * 253, request=request_object(arguments="x" * 131072)),
    ],
    ids=["input", "name", "steering", "result", "arguments"],
)
def test_what_is_just_within_bounds_is_accepted(admin: Actor, manifest: Object) -> None:
    admin.does("create", "--dry-run=server", "-f-", stdin=manifest)


def test_an_older_process_reads_what_a_newer_one_wrote() -> None:
    newer = {**FULL_TASK, "spec": {**FULL_TASK["spec"], "mood": "bright"}, "status": {"phase": "Pending", "aura": 1}}
    assert AuraTask.from_object(newer).spec.input == FULL_TASK["spec"]["input"]


def test_times_are_read_as_instants() -> None:
    owner = AuraTask.from_object(FULL_TASK).status.owner
    assert owner is not None
    assert owner.since == datetime(2026, 11, 29, 3, tzinfo=UTC)


# kubectl


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


# Generation


def test_the_files_in_crds_are_what_the_models_say() -> None:
    assert crds.main(["--check"]) == 0


def test_a_stale_missing_or_foreign_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.main(["--root", str(tmp_path)]) == 0
    assert crds.main(["--check", "--root", str(tmp_path)]) == 0
    folder = tmp_path / "crds"
    (folder / "auratasks.yaml").write_text("changed", encoding="utf-8")
    (folder / "auraagents.yaml").unlink()
    shutil.copy(folder / "aurasessions.yaml", folder / "aurathings.yaml")
    (tmp_path / "docs" / "reference" / "crds.md").write_text("changed", encoding="utf-8")
    assert crds.main(["--check", "--root", str(tmp_path)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in said] == [
        "crds/auraagents.yaml",
        "crds/auratasks.yaml",
        "crds/aurathings.yaml",
        "docs/reference/crds.md",
    ]
    assert all("run `make crds`" in line for line in said)


def test_the_reference_names_every_field_and_every_rule() -> None:
    page = (CHECKOUT / crds.REFERENCE).read_text(encoding="utf-8")
    assert "| `spec.mcpServers[].headersSecretRef` |" in page
    assert "| **`spec.decisions.*.approved`** | boolean |" in page
    assert "| `spec.limits.toolResultBytes` | integer, from 1024, to 163840 | `131072` |" in page
    assert "- epoch never falls" in page


def test_generated_files_are_valid_yaml_without_references() -> None:
    for text in crds.manifests().values():
        assert "$ref" not in json.dumps(yaml.safe_load(text))


def test_a_free_union_is_refused_when_it_is_written() -> None:
    class Loose(BaseModel):
        either: int | list[str]

    with pytest.raises(ValueError, match="a structural schema has no unions"):
        structural_schema(Loose)
