"""AuraTask's status: where a task stands, and all that is needed to go on with it elsewhere.

Owns the shape and the rules that hold whoever writes; transitions are in core/lifecycle.py.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from aura_operator.api.resource import (
    Conditions,
    Count,
    Model,
    Name,
    Sha256,
    Timestamp,
    ToolName,
    Uid,
    rules,
    unchanged,
)
from aura_operator.core.entries import Proof
from aura_operator.core.lifecycle import Phase, WaitKind

Incarnation = Annotated[str, Field(min_length=1, max_length=253)]

_TERMINAL = str([phase.value for phase in Phase if phase.terminal])


class Owner(Model):
    """The one worker that may write this task now."""

    worker: Name
    """Name of the worker's Pod."""
    incarnation: Incarnation
    """One life of that worker's process."""
    endpoint: Annotated[str, Field(max_length=512)] | None = None
    """Where its live deltas can be had."""
    stream_key: Annotated[str, Field(max_length=256)] | None = None
    """What a reader of live deltas has to show."""
    since: Timestamp
    """When it claimed the task."""


class Sealed(Model):
    """The newest AuraCheckpoint that holds journal entries."""

    name: Name
    """Name of the AuraCheckpoint."""
    next: Count
    """Position after its last entry."""


class Journal(Model):
    """The journal: where it stands, and the entries that aren't sealed yet."""

    schema_version: Annotated[int, Field(ge=1)]
    """Version of the journal's format. A worker leaves a newer one alone."""
    next: Count
    """Position that the next entry gets."""
    head: Annotated[str, Field(max_length=128)]
    """Hash over all entries so far."""
    # A write carries what is inline (about 8 KiB) plus one append, so neither bound is near what is really there.
    entries: Annotated[tuple[Annotated[str, Field(max_length=16384)], ...], Field(max_length=512)] = ()
    """Entries since the last sealed one, one line of JSON text each."""
    sealed: Sealed | None = None
    """Where the entries before these are."""


class Wait(Model):
    """One thing that a parked task waits for."""

    kind: WaitKind
    """What it is."""
    name: Name
    """Name of the approval, child or timer."""
    until: Timestamp | None = None
    """When the wait ends by itself."""


class Unresolved(Model):
    """A call that has been started and whose outcome isn't known."""

    call: Count
    """Number of the call in the task."""
    tool: ToolName
    """Tool that was called."""
    since: Timestamp
    """When it was started."""


class Progress(Model):
    """How far the task has come."""

    steps: Count = 0
    """Model responses and tool results so far."""
    turns: Count = 0
    """Model responses so far."""
    at: Timestamp | None = None
    """When the last of them was written."""


class Usage(Model):
    """What the models have used so far."""

    requests: Count = 0
    """Model requests."""
    input_tokens: Count = 0
    """Tokens sent."""
    output_tokens: Count = 0
    """Tokens received."""


class LastEnd(Model):
    """How the last ownership ended, and how that is known."""

    worker: Name
    """Name of the worker's Pod."""
    incarnation: Incarnation
    """Which life of its process."""
    epoch: Count
    """The epoch that ended."""
    proof: Proof
    """What shows that nobody of that epoch can go on."""
    at: Timestamp
    """When that was seen."""


class SteeringStatus(Model):
    """How much of the steering the model has seen."""

    consumed: Count = 0
    """Number of elements of spec.steering that the model has seen."""


class Result(Model):
    """What came of it: exactly one of text, ref and secretRef."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "[has(self.text), has(self.ref), has(self.secretRef)].exists_one(x, x)",
                "a result is exactly one of text, ref and secretRef",
            )
        )
    )

    text: Annotated[str, Field(max_length=65536)] | None = None
    """The result itself."""
    ref: Name | None = None
    """Name of the AuraCheckpoint that holds it."""
    secret_ref: Name | None = None
    """Name of the Secret that holds it."""
    sha256: Sha256 | None = None
    """Hash of a stored result's UTF-8 bytes."""
    bytes: Count | None = None
    """Size of a stored result in UTF-8 bytes."""


class Trace(Model):
    """Where the task's spans belong, whoever owns it."""

    traceparent: Annotated[str, Field(max_length=128)]
    """As W3C Trace Context writes it."""


class TaskStatus(Model):
    """How it stands. Written by the operator only."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            ("self.epoch >= oldSelf.epoch", "epoch never falls"),
            (
                f"!(oldSelf.phase in {_TERMINAL}) || ({unchanged('phase', optional=('reason', 'result'))})",
                "a finished task keeps its phase, reason and result",
            ),
            ("(self.phase == 'Running') == has(self.owner)", "a task has an owner if, and only if, it is Running"),
        )
    )

    phase: Phase = Phase.PENDING
    """Pending (wants a worker), Running, Waiting (parked; holds no worker), Succeeded, Failed or Cancelled."""
    reason: Annotated[str, Field(max_length=128)] | None = None
    """Why it is in this phase, as one CamelCase word."""
    summary: Annotated[str, Field(max_length=1024)] | None = None
    """How it stands, in one line."""
    conditions: Conditions = ()
    """`Complete`, `Failed`, `Parked`, and `Paused` while nobody owns it, for `kubectl wait`."""
    run: Uid | None = None
    """Id of this execution, born at the first claim."""
    owner: Owner | None = None
    """The worker that runs it now."""
    epoch: Count = 0
    """Number of claims so far; fences off earlier owners."""
    agent_revision: Name | None = None
    """The ControllerRevision of the agent that this task runs with."""
    journal: Journal | None = None
    """The journal, from which any worker can go on."""
    waiting_for: Annotated[tuple[Wait, ...], Field(max_length=256)] = ()
    """What a parked task waits for."""
    fired: Annotated[tuple[Name, ...], Field(max_length=512)] = ()
    """Names out of waitingFor that have come true."""
    unresolved: Annotated[tuple[Unresolved, ...], Field(max_length=256)] = ()
    """Calls that may or may not have happened. A task that has some can't be deleted without saying so."""
    progress: Progress | None = None
    """How far it has come."""
    usage: Usage | None = None
    """What the models have used so far."""
    recoveries: Count = 0
    """How often in a row it lost its worker without progress."""
    last_end: LastEnd | None = None
    """How the last ownership ended."""
    steering: SteeringStatus | None = None
    """How much of the steering the model has seen."""
    result: Result | None = None
    """What came of it."""
    trace: Trace | None = None
    """Where its spans belong."""
    started_at: Timestamp | None = None
    """When it was first claimed."""
    finished_at: Timestamp | None = None
    """When it ended."""
