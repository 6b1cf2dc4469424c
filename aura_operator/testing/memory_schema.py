"""What the API server makes of an object of our kinds by its CRD: defaults, bounds, unknown fields.

Owns schema checks only, from the same models as the CRDs; rules between an old and a new object are memory_rules.py's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from aura_operator.api.agent import AuraAgent
from aura_operator.api.approval import AuraApproval
from aura_operator.api.checkpoint import AuraCheckpoint
from aura_operator.api.resource import Definition
from aura_operator.api.resource import Resource as ApiResource
from aura_operator.api.schema import Schema, structural_schema
from aura_operator.api.session import AuraSession
from aura_operator.api.task import AuraTask
from aura_operator.errors import ContentRejectedError
from aura_operator.store.resources import Manifest, Resource
from aura_operator.testing.memory_patch import copied

MODELS: dict[str, type[ApiResource]] = {
    model.definition.plural: model for model in (AuraAgent, AuraApproval, AuraCheckpoint, AuraSession, AuraTask)
}


def definition_of(resource: Resource) -> Definition | None:
    """What our CRD says of the kind; None for the kinds of Kubernetes itself."""
    model = MODELS.get(resource.plural)
    return None if model is None else model.definition


def fields(resource: Resource, part: str) -> set[str]:
    """The names of the fields that `spec` or `status` of a kind has."""
    if resource.plural not in MODELS:
        return set()
    return set(_schema(resource.plural)["properties"].get(part, {}).get("properties", ()))


def defaulted(resource: Resource, manifest: Manifest) -> Manifest:
    """The object with its schema's defaults filled in, in place."""
    if resource.plural in MODELS:
        _fill(_schema(resource.plural), manifest)
    return manifest


def check(resource: Resource, manifest: Manifest, what: str) -> None:
    """Raises ContentRejectedError for content that the schema refuses, unknown fields included."""
    if resource.plural not in MODELS:
        return
    content = {name: value for name, value in manifest.items() if name != "metadata"}
    error = next(_validator(resource.plural).iter_errors(content), None)
    if error is not None:
        raise ContentRejectedError(f"{what}: {error.json_path.removeprefix('$.')}: {error.message[:300]} (422)")


@cache
def _schema(plural: str) -> Schema:
    schema = structural_schema(MODELS[plural])
    del schema["properties"]["metadata"]
    schema["required"] = [name for name in schema.get("required", ()) if name != "metadata"]
    return schema


@cache
def _validator(plural: str) -> Draft202012Validator:
    return Draft202012Validator(_closed(_schema(plural)))


def _closed(schema: Any) -> Any:
    """The same schema, in which objects with named fields have no others: what strict field validation means."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def _fill(schema: Schema, value: Any) -> None:
    if isinstance(value, dict):
        for name, child in schema.get("properties", {}).items():
            if name not in value and "default" in child:
                value[name] = copied(child["default"])
            if name in value:
                _fill(child, value[name])
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            for child_value in value.values():
                _fill(others, child_value)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            _fill(schema["items"], item)
