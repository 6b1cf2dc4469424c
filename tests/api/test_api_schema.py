"""The CRDs say what the models say: every field of every kind goes to the real server and comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from aura_operator.api import KINDS, AuraApproval, AuraTask, Resource
from aura_operator.api.approval import Decision
from aura_operator.core.entries import Choice
from tests.api.actors import Actor, Object
from tests.api.objects import agent_object, approval_object, request_object, task_object
from tests.api.samples import (
    FULL_TASK,
    SAMPLES,
)


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
