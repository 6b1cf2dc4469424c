"""The writes of an owner: claim, append, park, release, finish. One function each; nobody else writes these fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
from aura_operator.store.writes import Write, later_than, puts, same


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
    delta: JournalDelta,
    *,
    now: float,
    first: StatusFields,
    fields: StatusFields | None = None,
) -> Write:
    """Takes a Pending task. `delta` begins with its `claimed` entry; `first` is what only the first claim sets (run,
    revision)."""
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
        began = first_journal(schema=delta.schema, head=delta.head, lines=delta.lines)
        ops += [expect("/status/journal", None), add("/status/journal", began), *puts(first)]
    else:
        ops += [expect("/status/journal/head", journal.head), *_extended(journal.next, journal.schema, delta)]
    ops += [
        add("/status/phase", next_phase(Phase.PENDING, Move.CLAIM).value),
        add("/status/epoch", epoch),
        add("/status/owner", owner_fields(owner, now)),
        add("/status/waitingFor", []),
        *puts(fields or {}),
    ]

    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        held = status["epoch"] == epoch and status.get("owner", {}).get("incarnation") == owner.incarnation
        # By the head too: this worker may have claimed it with an earlier write, and have gone on since.
        return bool(held and status.get("journal", {}).get("head") == delta.head)

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
    still_owned = _owned(owned) if delta.sealed is not None else _held(owned)
    ops = (
        *still_owned,
        *_grown(owned, delta),
        add("/status/phase", next_phase(Phase.RUNNING, Move.RELEASE).value),
        remove("/status/owner"),
        add("/status/lastEnd", last_end_fields(owned.owner, owned.epoch, Proof.RELEASED, now)),
        *puts(fields),
    )
    return Write(name="release", ref=owned.ref, ops=ops, landed=later_than(owned.epoch))


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


def _held(owned: OwnedTask) -> tuple[Op, ...]:
    return (
        *same(owned.uid),
        expect("/status/epoch", owned.epoch),
        expect("/status/owner/incarnation", owned.owner.incarnation),
    )


def _owned(owned: OwnedTask) -> tuple[Op, ...]:
    return (
        *_held(owned),
        expect("/status/journal/next", owned.next),
        expect("/status/journal/head", owned.head),
    )


def _grown(owned: OwnedTask, delta: JournalDelta) -> tuple[Op, ...]:
    if not delta.lines and delta.sealed is None:
        return ()
    return _extended(owned.next, owned.schema, delta)


def _extended(position: int, schema: int, delta: JournalDelta) -> tuple[Op, ...]:
    """A journal of `position` entries, which needs `schema`, with the delta added."""
    following = position + len(delta.lines)
    place = [
        add("/status/journal/next", following),
        add("/status/journal/head", delta.head),
        *_raised(schema, delta.schema),
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


def _has_head(epoch: int, head: str) -> Callable[[Manifest], bool]:
    # Only the owner appends, one write at a time: while the epoch is the same, its head is the last one written.
    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] == epoch and status.get("journal", {}).get("head") == head)

    return landed
