"""What every kind shares: the base of all models, object metadata, conditions, references and bounded strings.

Owns no field that only one kind has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, JsonValue
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue

from aura_operator.api.descriptions import descriptions

GROUP: Final = "aura.mezmo.com"
VERSION: Final = "v1alpha1"
API_VERSION: Final = "aura.mezmo.com/v1alpha1"

# A JSON Patch can only append to a list, or add to a map, that is there: such fields get their empty value written.
KEEP_EMPTY_DEFAULT: dict[str, JsonValue] = {"x-aura-keep-empty-default": True}

# Kubernetes writes acronyms in capitals where a word goes before them; `schema` is taken in Python by pydantic.
_JSON_NAMES = {"base_url": "baseURL", "schema_version": "schema"}


def json_name(python_name: str) -> str:
    """The name of a field in JSON and YAML."""
    return _JSON_NAMES.get(python_name, to_camel(python_name))


def rules(*pairs: tuple[str, str]) -> dict[str, JsonValue]:
    """CEL rules as (expression, message), for a model's or a field's `json_schema_extra`."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]}


def unchanged(*json_names: str, optional: tuple[str, ...] = ()) -> str:
    """CEL that holds while none of these fields is changed, added or removed.

    It belongs on the object that has the fields: a rule on a field itself isn't run when the field goes away.
    (`self.?x == oldSelf.?x` would say it shorter, but the server can't bound the cost of comparing optionals.)
    """
    return " && ".join(
        [f"self.{name} == oldSelf.{name}" for name in json_names]
        + [
            f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
            for name in optional
        ]
    )


class Model(BaseModel):
    """Base of everything below: camelCase outside, snake_case inside, immutable.

    Unknown fields are ignored when an object is read: a newer CRD must not crash an older process. What is written
    goes through the API server's strict field validation instead.
    """

    model_config = ConfigDict(
        alias_generator=json_name,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        defer_build=True,  # a process validates a few of the kinds only: each validator takes 30 KB and 1 ms
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """pydantic's hook for a model's JSON schema: adds what the source says of its fields."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for base in reversed([base for base in cls.__mro__ if issubclass(base, Model)]):
            for name, text in descriptions(base).items():
                properties[json_name(name)]["description"] = text
        return schema

    @classmethod
    def from_object(cls, value: Mapping[str, Any]) -> Self:
        """Reads what the API server sent; raises pydantic's ValidationError where the shape is another one."""
        return cls.model_validate(value)

    def to_object(self) -> dict[str, Any]:
        """The JSON object that the API server takes: nothing that is None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


Name = Annotated[str, Field(min_length=1, max_length=253)]
Uid = Annotated[str, Field(min_length=1, max_length=64)]
User = Annotated[str, Field(min_length=1, max_length=256)]
ToolName = Annotated[str, Field(min_length=1, max_length=128)]
Count = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$", max_length=71)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", max_length=64)]
Timestamp = AwareDatetime


class LocalRef(Model):
    """Another object of the same namespace."""

    name: Name
    """Its name."""


class SecretKeyRef(Model):
    """One key of a Secret of the same namespace."""

    name: Name
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253)]
    """Key in the Secret's data."""


class Condition(Model):
    """One aspect of an object's state, as all of Kubernetes writes it."""

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """Name of the condition in CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, Field(max_length=128)]
    """Why, as one CamelCase word."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """Why, as a sentence for people."""
    last_transition_time: Timestamp
    """When `status` changed last."""
    observed_generation: Count | None = None
    """The metadata.generation that it speaks of."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]


class OwnerReference(Model):
    """The object whose end takes this one along."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    """The part of Kubernetes' object metadata that this project reads or writes."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of `kubectl get`. Never of type date for a time to come: that prints `<invalid>`."""

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    wide_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a CRD says besides the schema. `selectable` are JSON paths for field selectors."""

    plural: str
    short_name: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    # Leaves room for the names that are derived from this one (253 is the server's limit).
    name_max_length: int = 180
    has_status: bool = True


class Resource(Model):
    """An object of one of our kinds."""

    definition: ClassVar[Definition]

    api_version: Literal["aura.mezmo.com/v1alpha1"] = API_VERSION
    metadata: ObjectMeta
