"""AuraCheckpoint: what is too large to stand in the object that owns it. Immutable.

Owns the shape; who seals what, and when, is the worker's part.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from aura_operator.api.resource import (
    Column,
    Count,
    Definition,
    Model,
    Name,
    Resource,
    Sha256,
    Uid,
    rules,
)


class CheckpointOwner(Model):
    """The object that this belongs to."""

    kind: Literal["AuraTask", "AuraSession"]
    """Its kind."""
    name: Name
    """Its name."""
    uid: Uid
    """Its UID."""


class JournalSegment(Model):
    """Which part of a task's journal this is."""

    schema_version: Annotated[int, Field(ge=1)]
    """Version of the journal's format."""
    first: Count
    """Position of the first entry."""
    next: Count
    """Position after the last entry."""
    head_before: Annotated[str, Field(max_length=128)]
    """Hash over all entries before these."""
    head: Annotated[str, Field(max_length=128)]
    """Hash over all entries including these."""
    previous: Annotated[tuple[Name, ...], Field(max_length=63)] = ()
    """Names of the segments before this one, the nearest last."""


class CheckpointSpec(Model):
    """The content. Never changes."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("self == oldSelf", "a checkpoint never changes"),
            ("(self.type == 'Journal') == has(self.journal)", "type Journal has the field journal, no other type has"),
        )
    )

    owner: CheckpointOwner
    """What it belongs to; an owner reference says the same, so that it is collected with its owner."""
    type: Literal["Journal", "Payload", "Turn"]
    """Journal: sealed entries of a task. Payload: one large value. Turn: one turn of a session."""
    encoding: Literal["Plain", "GzipBase64"]
    """How `data` is to be read."""
    data: Annotated[str, Field(max_length=256000)]
    """The content."""
    sha256: Sha256
    """Hash of the decoded text's UTF-8 bytes."""
    bytes: Count
    """Size of the decoded text in UTF-8 bytes."""
    journal: JournalSegment | None = None
    """Type Journal: which part of the journal this is."""


class AuraCheckpoint(Resource):
    """Immutable content that belongs to a task or a session. Written by the operator only."""

    definition: ClassVar[Definition] = Definition(
        plural="auracheckpoints",
        short_name="ac",
        columns=(
            Column(name="Owner", path=".spec.owner.name"),
            Column(name="Type", path=".spec.type"),
            Column(name="Bytes", path=".spec.bytes", type="integer"),
            Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        ),
        # <owner>-<uid8>-<kind>-<digest16> with an owner's 180 characters
        name_max_length=253,
        has_status=False,
    )

    kind: Literal["AuraCheckpoint"] = "AuraCheckpoint"
    spec: CheckpointSpec
    """The content."""
