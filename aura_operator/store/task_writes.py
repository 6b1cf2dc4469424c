"""The writes that matter: claim, append, park, release, finish, fire and orphan.

One function each. All are JSON Patches on status whose tests say under which circumstances they hold, and each knows
how to see in the object whether it has landed. No resourceVersion is used, so that a user's patch of the spec never
makes one fail. commit.py sends them; nobody else writes these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aura_operator.core.entries import Proof
from aura_operator.core.instants import to_second_text
from aura_operator.core.lifecycle import FINISH_MOVES, Move, Phase, next_phase
from aura_operator.core.ownership import Owner
from aura_operator.store.interface import Op, add, expect, remove
from aura_operator.store.resources import Manifest, Ref
from aura_operator.store.task_fields import (
    ResultFields,
    StatusFields,
    Wait,
    first_journal,
    last_end_fields,
    owner_fields,
    wait_fields,
)
from aura_operator.store.view import TaskView


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One conditional write. `landed` tells from the object, read later, whether this very write was carried out."""

    name: str
    ref: Ref
    ops: tuple[Op, ...]
    landed: Callable[[Manifest], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedTask:
    """A task in the hands of its owner: what every write of the owner tests. `entries` stand in the status now."""

    ref: Ref
    uid: str
    epoch: int
    owner: Owner
    schema: int
    next: int
    head: str
    entries: tuple[str, ...]
    sealed: tuple[str, int] | None = None  # last segment, and the number of entries up to its end


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalDelta:
    """What an owner's write adds to the journal: the lines, the head after them, the schema that they need, and, if
    they made the status too large, the segment that now holds all entries up to `next`."""

    lines: tuple[str, ...]
    head: str
    schema: int = 1
    sealed: str | None = None


def claim(
    task: TaskView,
    owner: Owner,
    *,
    line: str,
    schema: int,
    head: str,
    now: float,
    first: StatusFields,
    fields: StatusFields | None = None,
) -> Write:
    """Takes a Pending task. `line` is its `claimed` entry, `schema` what that needs, `first` what only the first claim
    sets (run, revision)."""
    epoch = task.epoch + 1
    journal = task.journal
    ops = [
        *same(task.uid),
        expect("/metadata/deletionTimestamp", None),
        expect("/spec/desired", task.desired.value),
        expect("/status/phase", Phase.PENDING.value),
        expect("/status/epoch", task.epoch),
    ]
    if journal is None:
        began = first_journal(schema=schema, head=head, line=line)
        ops += [expect("/status/journal", None), add("/status/journal", began), *puts(first)]
    else:
        ops += [
            expect("/status/journal/head", journal.head),
            add("/status/journal/entries/-", line),
            add("/status/journal/next", journal.next + 1),
            add("/status/journal/head", head),
            *_raised(journal.schema, schema),
        ]
    ops += [
        add("/status/phase", next_phase(Phase.PENDING, Move.CLAIM).value),
        add("/status/epoch", epoch),
        add("/status/owner", owner_fields(owner, now)),
        add("/status/waitingFor", []),
        *puts(fields or {}),
    ]

    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] == epoch and status.get("owner", {}).get("incarnation") == owner.incarnation)

    return Write(name="claim", ref=task.ref, ops=tuple(ops), landed=landed)


def append(owned: OwnedTask, delta: JournalDelta, *, fields: Mapping[str, object]) -> Write:
    """Adds entries to the journal of a task that the writer owns. `fields`: those of StatusFields that have changed."""
    ops = (*_owned(owned), *_grown(owned, delta), *puts(fields))
    return Write(name="append", ref=owned.ref, ops=ops, landed=_has_head(owned.epoch, delta.head))


def park(
    owned: OwnedTask,
    delta: JournalDelta,
    *,
    waiting_for: Sequence[Wait],
    fired: Sequence[str],
    now: float,
    fields: StatusFields,
) -> Write:
    """Gives the task up until something that it waits for fires. `fired` as last seen: a wake-up that came meanwhile
    makes the write fail, and the owner looks again."""
    ops = (
        *_owned(owned),
        expect("/status/fired", list(fired) or None),
        *_grown(owned, delta),
        add("/status/phase", next_phase(Phase.RUNNING, Move.PARK).value),
        remove("/status/owner"),
        add("/status/waitingFor", [wait_fields(wait) for wait in waiting_for]),
        *([remove("/status/fired")] if fired else []),
        add("/status/lastEnd", last_end_fields(owned.owner, owned.epoch, Proof.RELEASED, now)),
        *puts(fields),
    )

    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        same_epoch = status["epoch"] == owned.epoch and status["phase"] != Phase.RUNNING.value
        return bool(status["epoch"] > owned.epoch or (same_epoch and status["journal"]["head"] == delta.head))

    return Write(name="park", ref=owned.ref, ops=ops, landed=landed)


def release(owned: OwnedTask, delta: JournalDelta, *, now: float, fields: StatusFields) -> Write:
    """Gives the task back to be claimed by anybody, at once. It adds nothing to the journal, since it also holds for an
    owner that doesn't know the journal: a delta with lines is a ValueError, or they would be lost without a word."""
    if delta.lines:
        raise ValueError(f"{owned.ref} can't be released with {len(delta.lines)} entries unwritten")
    ops = (
        *same(owned.uid),
        expect("/status/epoch", owned.epoch),
        expect("/status/owner/incarnation", owned.owner.incarnation),
        add("/status/phase", next_phase(Phase.RUNNING, Move.RELEASE).value),
        remove("/status/owner"),
        add("/status/lastEnd", last_end_fields(owned.owner, owned.epoch, Proof.RELEASED, now)),
        *puts(fields),
    )
    return Write(name="release", ref=owned.ref, ops=ops, landed=_later_than(owned.epoch))


def finish(
    owned: OwnedTask, delta: JournalDelta, *, phase: Phase, result: ResultFields, now: float, fields: StatusFields
) -> Write:
    """Ends the task. `result`: text or ref; `delta` ends in the `finished` entry."""
    if not delta.lines:  # by the head after them this write is known again
        raise ValueError(f"{owned.ref} can't be finished without a last entry")
    ops = (
        *_owned(owned),
        *_grown(owned, delta),
        add("/status/phase", next_phase(Phase.RUNNING, FINISH_MOVES[phase]).value),
        remove("/status/owner"),
        *([add("/status/result", dict(result))] if result else []),
        add("/status/finishedAt", to_second_text(now)),
        add("/status/waitingFor", []),
        *puts(fields),
    )
    # By the head, not by the phase: another owner may have finished it, and then this one was too late.
    return Write(name="finish", ref=owned.ref, ops=ops, landed=_has_head(owned.epoch, delta.head))


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
    return Write(name="orphan", ref=task.ref, ops=ops, landed=_later_than(task.epoch))


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


def same(uid: str) -> tuple[Op, ...]:
    """It is still that very object."""
    return (expect("/metadata/uid", uid),)


def _owned(owned: OwnedTask) -> tuple[Op, ...]:
    return (
        *same(owned.uid),
        expect("/status/epoch", owned.epoch),
        expect("/status/owner/incarnation", owned.owner.incarnation),
        expect("/status/journal/next", owned.next),
        expect("/status/journal/head", owned.head),
    )


def _grown(owned: OwnedTask, delta: JournalDelta) -> tuple[Op, ...]:
    if not delta.lines:
        return ()
    following = owned.next + len(delta.lines)
    place = [
        add("/status/journal/next", following),
        add("/status/journal/head", delta.head),
        *_raised(owned.schema, delta.schema),
    ]
    if delta.sealed is None:
        return (*(add("/status/journal/entries/-", line) for line in delta.lines), *place)
    return (
        add("/status/journal/entries", []),
        add("/status/journal/sealed", {"name": delta.sealed, "next": following}),
        *place,
    )


def _raised(schema: int, needed: int) -> tuple[Op, ...]:
    """The journal's number grows with the first entry that needs a higher one, in the very write that brings it."""
    return (add("/status/journal/schema", needed),) if needed > schema else ()


def puts(fields: Mapping[str, object]) -> tuple[Op, ...]:
    """Sets fields of the status."""
    return tuple(add(f"/status/{name}", value) for name, value in fields.items())


def _has_head(epoch: int, head: str) -> Callable[[Manifest], bool]:
    # Only the owner appends, one write at a time: while the epoch is the same, its head is the last one written.
    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] == epoch and status.get("journal", {}).get("head") == head)

    return landed


def _later_than(epoch: int) -> Callable[[Manifest], bool]:
    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] > epoch or status["phase"] != Phase.RUNNING.value)

    return landed
