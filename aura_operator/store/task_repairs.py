"""The controller's writes on a task that nobody runs, or nobody can be running: fire, orphan and remark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from aura_operator.core.entries import Proof
from aura_operator.core.lifecycle import Move, Phase, next_phase
from aura_operator.store.interface import add, expect, remove
from aura_operator.store.resources import Manifest, Ref
from aura_operator.store.task_fields import (
    StatusFields,
    Wait,
    last_end_fields,
)
from aura_operator.store.view import TaskView
from aura_operator.store.writes import Write, later_than, puts, same


class Awaiting(Protocol):
    """What `fire` needs of a task: a TaskView has it, and so has what little is kept of thousands that are parked."""

    @property
    def ref(self) -> Ref: ...
    @property
    def uid(self) -> str: ...
    @property
    def phase(self) -> Phase: ...
    @property
    def waiting_for(self) -> Sequence[Wait]: ...
    @property
    def fired(self) -> Sequence[str]: ...


def fire(task: Awaiting, name: str, *, fields: StatusFields) -> Write | None:
    """Says that something has come that the task waits for, and wakes it; None if it doesn't wait for that any more."""
    position = next((index for index, wait in enumerate(task.waiting_for) if wait.name == name), None)
    if position is None or name in task.fired or task.phase not in (Phase.WAITING, Phase.PENDING):
        return None
    ops = [
        *same(task.uid),
        expect("/status/phase", task.phase.value),
        expect(f"/status/waitingFor/{position}/name", name),
        expect("/status/fired", list(task.fired) or None),
        add("/status/fired", [*task.fired, name]),
        add("/status/phase", next_phase(task.phase, Move.FIRE).value),
        *puts(fields),
    ]

    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        awaited = any(wait["name"] == name for wait in status.get("waitingFor", ()))
        return name in status.get("fired", ()) or not awaited

    return Write(name="fire", ref=task.ref, ops=tuple(ops), landed=landed)


def orphan(task: TaskView, proof: Proof, *, now: float, fields: StatusFields) -> Write:
    """Takes a Running task from an owner that can't be running it any more, for anybody to claim."""
    if task.owner is None:
        raise ValueError(f"{task.ref} has no owner to be taken from")
    ops = (
        *same(task.uid),
        expect("/status/epoch", task.epoch),
        expect("/status/owner/incarnation", task.owner.incarnation),
        expect("/status/phase", Phase.RUNNING.value),
        add("/status/phase", next_phase(Phase.RUNNING, Move.ORPHAN).value),
        remove("/status/owner"),
        add("/status/recoveries", task.recoveries + (1 if proof.is_death else 0)),
        add("/status/lastEnd", last_end_fields(task.owner, task.epoch, proof, now)),
        *puts(fields),
    )
    return Write(name="orphan", ref=task.ref, ops=ops, landed=later_than(task.epoch))


def remark(task: TaskView, *, fields: StatusFields) -> Write:
    """Says something about a task that nobody owns: its summary. Not part of any journal."""
    wanted: dict[str, Any] = {**fields}
    ops = (
        *same(task.uid),
        expect("/status/phase", task.phase.value),
        expect("/status/epoch", task.epoch),
        *puts(wanted),
    )

    def landed(manifest: Manifest) -> bool:
        return all(manifest["status"].get(name) == value for name, value in wanted.items())

    return Write(name="remark", ref=task.ref, ops=ops, landed=landed)
