"""The fields of an AuraTask's status as they are written, and each part read and written side by side.

Owns the spelling of the JSON names: nothing else in the processes says one. The schema is generated from api/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from aura_operator.core.entries import Proof
from aura_operator.core.instants import from_text, to_second_text, to_text
from aura_operator.core.journal import GENESIS
from aura_operator.core.lifecycle import WaitKind
from aura_operator.core.ownership import Owner
from aura_operator.core.state import TaskState

CANNOT_RUN_NOW = "can't be run now: "
"""How an owner begins the summary of a task that it gives back for a reason that may pass. Nobody knows better until it
is claimed again, so the controller leaves such a summary alone."""


class OwnerFields(TypedDict):
    worker: str
    incarnation: str
    since: str


class SealedFields(TypedDict):
    name: str
    next: int


class JournalFields(TypedDict):
    schema: int
    next: int
    head: str
    entries: list[str]
    sealed: NotRequired[SealedFields]


class WaitFields(TypedDict):
    kind: str
    name: str
    until: NotRequired[str]


class LastEndFields(TypedDict):
    worker: str
    incarnation: str
    epoch: int
    proof: str
    at: str


class UnresolvedFields(TypedDict):
    call: int
    tool: str
    since: str


class ProgressFields(TypedDict):
    steps: int
    turns: int
    at: str


class UsageFields(TypedDict):
    requests: int
    inputTokens: int
    outputTokens: int


class SteeringFields(TypedDict):
    consumed: int


class ResultFields(TypedDict, total=False):
    text: str
    ref: str
    sha256: str
    bytes: int


class ConditionFields(TypedDict):
    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: str
    observedGeneration: NotRequired[int]


class StatusFields(TypedDict, total=False):
    """What is set in the status beside phase, epoch, owner, journal and waits, which only task_writes.py sets."""

    run: str
    agentRevision: str
    startedAt: str
    reason: str
    summary: str
    conditions: list[ConditionFields]
    unresolved: list[UnresolvedFields]
    progress: ProgressFields
    usage: UsageFields
    recoveries: int
    steering: SteeringFields


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One element of `waitingFor`. `until` in Unix seconds."""

    kind: WaitKind
    name: str
    until: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalView:
    """`status.journal`. `sealed` is the name of the last sealed segment, `sealed_next` the entries up to its end."""

    schema: int
    next: int
    head: str
    entries: tuple[str, ...]
    sealed: str | None
    sealed_next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastEnd:
    """How the last ownership ended."""

    owner: Owner
    epoch: int
    proof: Proof


def owner_fields(owner: Owner, since: float) -> OwnerFields:
    return {"worker": owner.worker, "incarnation": owner.incarnation, "since": to_second_text(since)}


def owner_of(fields: OwnerFields | None) -> Owner | None:
    return None if not fields else Owner(worker=fields["worker"], incarnation=fields["incarnation"])


def first_journal(*, schema: int, head: str, lines: Sequence[str]) -> JournalFields:
    """The journal of a task at its first claim."""
    return {"schema": schema, "next": len(lines), "head": head, "entries": list(lines)}


def journal_of(fields: JournalFields | None) -> JournalView | None:
    if not fields:
        return None
    sealed = fields.get("sealed")
    return JournalView(
        schema=fields["schema"],
        next=fields["next"],
        head=fields.get("head", GENESIS),
        entries=tuple(fields.get("entries", ())),
        sealed=sealed["name"] if sealed else None,
        sealed_next=sealed["next"] if sealed else 0,
    )


def wait_fields(wait: Wait) -> WaitFields:
    fields: WaitFields = {"kind": wait.kind.value, "name": wait.name}
    if wait.until is not None:
        fields["until"] = to_text(wait.until)
    return fields


def waits_of(fields: Sequence[WaitFields]) -> tuple[Wait, ...]:
    return tuple(
        Wait(
            kind=WaitKind(item["kind"]),
            name=item["name"],
            until=from_text(item["until"]) if "until" in item else None,
        )
        for item in fields
    )


def last_end_fields(owner: Owner, epoch: int, proof: Proof, at: float) -> LastEndFields:
    return {
        "worker": owner.worker,
        "incarnation": owner.incarnation,
        "epoch": epoch,
        "proof": proof.value,
        "at": to_text(at),
    }


def last_end_of(fields: LastEndFields | None) -> LastEnd | None:
    if not fields:
        return None
    owner = Owner(worker=fields["worker"], incarnation=fields["incarnation"])
    return LastEnd(owner=owner, epoch=fields["epoch"], proof=Proof(fields["proof"]))


def journal_facts(state: TaskState, at: float) -> StatusFields:
    """What the status says of a journal and follows from it alone. `at`: when its last entry was recorded."""
    usage = state.usage
    return {
        "unresolved": [
            {"call": effect.call, "tool": effect.tool, "since": to_second_text(effect.since)}
            for effect in state.unresolved
        ],
        "progress": {"steps": state.steps, "turns": state.turns, "at": to_text(at)},
        "usage": {
            "requests": usage.requests,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
        },
        "recoveries": state.recoveries,
        "steering": {"consumed": state.steering_consumed},
    }
