"""The writes that matter: claim, append, park, release, finish, fire and orphan.

One function each. All are JSON Patches on status whose tests say under which circumstances they hold, and each knows
how to see in the object whether it has landed. No resourceVersion is used, so that a user's patch of the spec never
makes one fail. commit.py sends them; nobody else writes these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aura_operator.core.entries import Proof
from aura_operator.core.instants import to_second_text, to_text
from aura_operator.core.journal import SCHEMA
from aura_operator.core.lifecycle import FINISH_MOVES, Move, Phase, next_phase
from aura_operator.core.ownership import Owner
from aura_operator.store.client import Op, put, remove, test
from aura_operator.store.resources import Manifest, Ref
from aura_operator.store.view import TaskView, Wait

Extras = Mapping[str, Any]
"""Further fields of status that are set in the same write: summary, conditions, unresolved, progress, usage, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One conditional write. `landed` tells from the object, read later, whether this very write was carried out."""

    name: str
    ref: Ref
    ops: tuple[Op, ...]
    landed: Callable[[Manifest], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A task in the hands of its owner: what every write of the owner tests. `entries` stand in the status now."""

    ref: Ref
    uid: str
    epoch: int
    owner: Owner
    next: int
    head: str
    entries: tuple[str, ...]
    sealed: tuple[str, int] | None = None  # last segment, and the number of entries up to its end


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What an owner's write adds to the journal: the lines, the head after them, and, if they made the status too
    large, the segment that now holds all entries up to `next`."""

    lines: tuple[str, ...]
    head: str
    sealed: str | None = None


def claim(
    task: TaskView, owner: Owner, *, line: str, head: str, now: float, first: Extras, extras: Extras | None = None
) -> Write:
    """Takes a Pending task. `line` is its `claimed` entry, `first` what only the first claim sets (run, revision)."""
    epoch = task.epoch + 1
    journal = task.journal
    ops = [
        *same(task.uid),
        test("/metadata/deletionTimestamp", None),
        test("/spec/desired", task.desired.value),
        test("/status/phase", Phase.PENDING.value),
        test("/status/epoch", task.epoch),
    ]
    if journal is None:
        checkpoint = {"schema": SCHEMA, "next": 1, "head": head, "entries": [line]}
        ops += [test("/status/checkpoint", None), put("/status/checkpoint", checkpoint), *puts(first)]
    else:
        ops += [
            test("/status/checkpoint/head", journal.head),
            put("/status/checkpoint/entries/-", line),
            put("/status/checkpoint/next", journal.next + 1),
            put("/status/checkpoint/head", head),
        ]
    held_by = {"worker": owner.worker, "incarnation": owner.incarnation, "since": to_second_text(now)}
    ops += [
        put("/status/phase", next_phase(Phase.PENDING, Move.CLAIM).value),
        put("/status/epoch", epoch),
        put("/status/owner", held_by),
        put("/status/waitingFor", []),
        *puts(extras or {}),
    ]

    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] == epoch and status.get("owner", {}).get("incarnation") == owner.incarnation)

    return Write(name="claim", ref=task.ref, ops=tuple(ops), landed=landed)


def append(holding: Holding, growth: Growth, *, extras: Extras) -> Write:
    """Adds entries to the journal of a task that the writer owns."""
    ops = (*_owned(holding), *_grown(holding, growth), *puts(extras))
    return Write(name="append", ref=holding.ref, ops=ops, landed=_has_head(holding.epoch, growth.head))


def park(
    holding: Holding,
    growth: Growth,
    *,
    waiting_for: Sequence[Wait],
    fired: Sequence[str],
    now: float,
    extras: Extras,
) -> Write:
    """Gives the task up until something that it waits for fires. `fired` as last seen: a wake-up that came meanwhile
    makes the write fail, and the owner looks again."""
    ops = (
        *_owned(holding),
        test("/status/fired", list(fired) or None),
        *_grown(holding, growth),
        put("/status/phase", next_phase(Phase.RUNNING, Move.PARK).value),
        remove("/status/owner"),
        put("/status/waitingFor", [_wait_fields(wait) for wait in waiting_for]),
        *([remove("/status/fired")] if fired else []),
        put("/status/lastEnd", _end_fields(holding.owner, holding.epoch, Proof.RELEASED, now)),
        *puts(extras),
    )

    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        same_epoch = status["epoch"] == holding.epoch and status["phase"] != Phase.RUNNING.value
        return bool(status["epoch"] > holding.epoch or (same_epoch and status["checkpoint"]["head"] == growth.head))

    return Write(name="park", ref=holding.ref, ops=ops, landed=landed)


def release(holding: Holding, *, now: float, extras: Extras) -> Write:
    """Gives the task back to be claimed by anybody, at once."""
    ops = (
        *same(holding.uid),
        test("/status/epoch", holding.epoch),
        test("/status/owner/incarnation", holding.owner.incarnation),
        put("/status/phase", next_phase(Phase.RUNNING, Move.RELEASE).value),
        remove("/status/owner"),
        put("/status/lastEnd", _end_fields(holding.owner, holding.epoch, Proof.RELEASED, now)),
        *puts(extras),
    )
    return Write(name="release", ref=holding.ref, ops=ops, landed=_later_than(holding.epoch))


def finish(holding: Holding, growth: Growth, *, phase: Phase, result: Extras, now: float, extras: Extras) -> Write:
    """Ends the task. `result`: text or ref; `growth` ends in the `finished` entry."""
    assert growth.lines, "a journal ends in an entry, and by its head this write is known again"
    ops = (
        *_owned(holding),
        *_grown(holding, growth),
        put("/status/phase", next_phase(Phase.RUNNING, FINISH_MOVES[phase]).value),
        remove("/status/owner"),
        *([put("/status/result", dict(result))] if result else []),
        put("/status/finishedAt", to_second_text(now)),
        put("/status/waitingFor", []),
        *puts(extras),
    )
    # By the head, not by the phase: another owner may have finished it, and then this one was too late.
    return Write(name="finish", ref=holding.ref, ops=ops, landed=_has_head(holding.epoch, growth.head))


def fire(task: TaskView, name: str, *, extras: Extras) -> Write | None:
    """Says that something has come that the task waits for, and wakes it; None if it doesn't wait for that any more."""
    position = next((index for index, wait in enumerate(task.waiting_for) if wait.name == name), None)
    if position is None or name in task.fired or task.phase not in (Phase.WAITING, Phase.PENDING):
        return None
    ops = [
        *same(task.uid),
        test("/status/phase", task.phase.value),
        test(f"/status/waitingFor/{position}/name", name),
        test("/status/fired", list(task.fired) or None),
        put("/status/fired", [*task.fired, name]),
        put("/status/phase", next_phase(task.phase, Move.FIRE).value),
        *puts(extras),
    ]

    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        awaited = any(wait["name"] == name for wait in status.get("waitingFor", ()))
        return name in status.get("fired", ()) or not awaited

    return Write(name="fire", ref=task.ref, ops=tuple(ops), landed=landed)


def orphan(task: TaskView, proof: Proof, *, now: float, extras: Extras) -> Write:
    """Takes a Running task from an owner that can't be running it any more, for anybody to claim."""
    assert task.owner is not None
    ops = (
        *same(task.uid),
        test("/status/epoch", task.epoch),
        test("/status/owner/incarnation", task.owner.incarnation),
        test("/status/phase", Phase.RUNNING.value),
        put("/status/phase", next_phase(Phase.RUNNING, Move.ORPHAN).value),
        remove("/status/owner"),
        put("/status/recoveries", task.recoveries + (1 if proof.is_death else 0)),
        put("/status/lastEnd", _end_fields(task.owner, task.epoch, proof, now)),
        *puts(extras),
    )
    return Write(name="orphan", ref=task.ref, ops=ops, landed=_later_than(task.epoch))


def same(uid: str) -> tuple[Op, ...]:
    """It is still that very object."""
    return (test("/metadata/uid", uid),)


def _owned(holding: Holding) -> tuple[Op, ...]:
    return (
        *same(holding.uid),
        test("/status/epoch", holding.epoch),
        test("/status/owner/incarnation", holding.owner.incarnation),
        test("/status/checkpoint/next", holding.next),
        test("/status/checkpoint/head", holding.head),
    )


def _grown(holding: Holding, growth: Growth) -> tuple[Op, ...]:
    if not growth.lines:
        return ()
    following = holding.next + len(growth.lines)
    place = [put("/status/checkpoint/next", following), put("/status/checkpoint/head", growth.head)]
    if growth.sealed is None:
        return (*(put("/status/checkpoint/entries/-", line) for line in growth.lines), *place)
    return (
        put("/status/checkpoint/entries", []),
        put("/status/checkpoint/sealed", {"name": growth.sealed, "next": following}),
        *place,
    )


def puts(fields: Extras) -> tuple[Op, ...]:
    """Sets fields of the status."""
    return tuple(put(f"/status/{name}", value) for name, value in fields.items())


def _wait_fields(wait: Wait) -> dict[str, Any]:
    fields = {"kind": wait.kind.value, "name": wait.name}
    return fields if wait.until is None else fields | {"until": to_text(wait.until)}


def _end_fields(owner: Owner, epoch: int, proof: Proof, now: float) -> dict[str, Any]:
    return {
        "worker": owner.worker,
        "incarnation": owner.incarnation,
        "epoch": epoch,
        "proof": proof.value,
        "at": to_text(now),
    }


def _has_head(epoch: int, head: str) -> Callable[[Manifest], bool]:
    # Only the owner appends, one write at a time: while the epoch is the same, its head is the last one written.
    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] == epoch and status.get("checkpoint", {}).get("head") == head)

    return landed


def _later_than(epoch: int) -> Callable[[Manifest], bool]:
    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] > epoch or status["phase"] != Phase.RUNNING.value)

    return landed


def remark(task: TaskView, *, extras: Extras) -> Write:
    """Says something about a task that nobody owns: its summary. Not part of any journal."""
    wanted = dict(extras)
    ops = (
        *same(task.uid),
        test("/status/phase", task.phase.value),
        test("/status/epoch", task.epoch),
        *puts(wanted),
    )

    def landed(manifest: Manifest) -> bool:
        return all(manifest["status"].get(name) == value for name, value in wanted.items())

    return Write(name="remark", ref=task.ref, ops=ops, landed=landed)
