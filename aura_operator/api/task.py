"""AuraTask: one piece of work, and what its user wants of it.

Owns the kind and its spec, and the rules on it that hold whoever writes; the status is in task_status.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from aura_operator.api.resource import (
    KEEP_EMPTY_DEFAULT,
    Column,
    Count,
    Definition,
    LocalRef,
    Model,
    Name,
    Resource,
    Uid,
    User,
    rules,
    unchanged,
)
from aura_operator.api.task_status import TaskStatus
from aura_operator.core.lifecycle import Desired


class Steering(Model):
    """A word from a person to a task on its way."""

    id: Annotated[str, Field(min_length=1, max_length=64)]
    """Chosen by the sender; unique in the task."""
    text: Annotated[str, Field(min_length=1, max_length=2048)]
    """What the model is told."""
    by: User | None = None
    """Who said it. Stamped by admission."""


class Parent(Model):
    """The task and call that this task works for."""

    name: Name
    """Name of the parent task."""
    uid: Uid
    """UID of the parent task."""
    run: Uid
    """The parent's `status.run`."""
    call: Count
    """Number of the parent's call that started this task."""


class TaskSpec(Model):
    """What is wanted. Only desired, steering, priority and ttlSecondsAfterFinished may change."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                unchanged("agentRef", "input", "requester", optional=("sessionRef", "activeDeadlineSeconds", "parent")),
                "only desired, steering, priority and ttlSecondsAfterFinished of a task may change",
            ),
            ("oldSelf.desired != 'Cancel' || self.desired == 'Cancel'", "a cancelled task stays cancelled"),
            (
                "!has(oldSelf.steering) || (has(self.steering) && self.steering.size() >= oldSelf.steering.size() && "
                "oldSelf.steering.all(s, self.steering[oldSelf.steering.indexOf(s)] == s))",
                "steering is append-only",
            ),
            (
                "!has(self.steering) || self.steering.all(a, self.steering.exists_one(b, b.id == a.id))",
                "ids of steering are unique",
            ),
            ("!has(self.parent) || !has(self.sessionRef)", "a child task has no session"),
        )
    )

    agent_ref: LocalRef
    """The AuraAgent that does the work, in the same namespace."""
    session_ref: LocalRef | None = None
    """The AuraSession whose next turn this is, in the same namespace. The task starts when it is its turn."""
    input: Annotated[str, Field(min_length=1, max_length=32768)]
    """What is to be done, in words."""
    desired: Desired = Desired.RUN
    """Run, Pause (stops before the next step and holds no worker) or Cancel (final)."""
    steering: Annotated[tuple[Steering, ...], Field(max_length=32, json_schema_extra=KEEP_EMPTY_DEFAULT)] = ()
    """Words to the task on its way, in order; can only be appended to."""
    priority: Annotated[int, Field(ge=-100, le=100)] = 0
    """Higher goes first where workers are short."""
    active_deadline_seconds: Annotated[int, Field(ge=1, le=31536000)] | None = None
    """How long the task may take from its first claim, waiting included."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=315360000)] | None = None
    """How long the object is kept after the task's end; for ever if absent."""
    requester: User
    """Who asked for it. Stamped by admission."""
    parent: Parent | None = None
    """The task that this one works for; set by the operator only."""


class AuraTask(Resource):
    """One piece of work for an agent. It survives the worker that runs it: any other goes on from its journal."""

    definition: ClassVar[Definition] = Definition(
        plural="auratasks",
        short_name="at",
        columns=(
            Column(name="Agent", path=".spec.agentRef.name"),
            Column(name="Phase", path=".status.phase"),
            Column(name="Summary", path=".status.summary"),
            Column(name="Steps", path=".status.progress.steps", type="integer"),
            Column(name="Worker", path=".status.owner.worker", wide_only=True),
            Column(name="Requester", path=".spec.requester", wide_only=True),
            Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        ),
        selectable=(".status.phase", ".status.owner.worker"),
    )

    kind: Literal["AuraTask"] = "AuraTask"
    spec: TaskSpec
    """What is wanted."""
    # The schema's default makes a new task claimable with nobody in between.
    status: TaskStatus = TaskStatus()
    """How it stands."""
