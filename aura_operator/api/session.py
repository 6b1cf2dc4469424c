"""AuraSession: a conversation, whose tasks run one at a time and see the turns before them.

Owns the shape; whose turn it is, is decided in core.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from aura_operator.api.resource import (
    Column,
    Conditions,
    Definition,
    LocalRef,
    Model,
    Name,
    Resource,
    Timestamp,
    Uid,
    rules,
)


class SessionSpec(Model):
    """What the conversation is held with. Never changes."""

    model_config = ConfigDict(json_schema_extra=rules(("self == oldSelf", "the agent of a session never changes")))

    agent_ref: LocalRef
    """The AuraAgent of the session's tasks, in the same namespace."""


class SessionTask(Model):
    """A task of this session."""

    task: Name
    """Its name."""
    uid: Uid
    """Its UID: a new task of the same name is another one."""


class Turn(Model):
    """One turn of the conversation."""

    task: Name
    """The task that it was."""
    uid: Uid
    """UID of that task."""
    outcome: Literal["Succeeded", "Failed", "Cancelled", "Aborted"]
    """How it ended. Aborted: the task vanished."""
    ref: Name | None = None
    """The AuraCheckpoint that holds its messages."""
    at: Timestamp
    """When it ended."""


class SessionStatus(Model):
    """How the conversation stands. Written by the operator only."""

    conditions: Conditions = ()
    """`Ready`, with the reason if it isn't."""
    active: SessionTask | None = None
    """The task whose turn it is."""
    queue: Annotated[tuple[SessionTask, ...], Field(max_length=256)] = ()
    """Tasks that wait for their turn, in order."""
    turns: Annotated[tuple[Turn, ...], Field(max_length=512)] = ()
    """Turns so far, the oldest first."""


class AuraSession(Resource):
    """A conversation: its tasks run one at a time, in order, and each sees the turns before it."""

    definition: ClassVar[Definition] = Definition(
        plural="aurasessions",
        short_name="as",
        columns=(
            Column(name="Agent", path=".spec.agentRef.name"),
            Column(name="Active", path=".status.active.task"),
            Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        ),
    )

    kind: Literal["AuraSession"] = "AuraSession"
    spec: SessionSpec
    """What the conversation is held with."""
    status: SessionStatus | None = None
    """How it stands."""
