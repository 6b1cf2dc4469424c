"""`python -m tests.e2e.next_version worker …`: a worker of the version after this one, for tests.

It knows one more kind of entry, `noted`, which needs a higher schema, and writes one as each ownership begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from aura_operator.cli import main
from aura_operator.core import codec, fold
from aura_operator.core.absorb import World, absorb
from aura_operator.core.entries import Entry
from aura_operator.core.kinds import Kind
from aura_operator.core.state import TaskState
from aura_operator.worker.task import runner

SCHEMA = codec.SCHEMA + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What only the next version has to say."""

    at: float
    epoch: int


def become() -> None:
    """Makes this process one of the next version."""
    kind = Kind[Noted](
        name="noted",
        entry=Noted,
        write=lambda entry: {"epoch": entry.epoch},
        read=lambda at, fields: Noted(at=at, epoch=fields["epoch"]),
        since=SCHEMA,
    )
    codec.SCHEMA = SCHEMA
    codec._BY_CLASS[Noted] = kind
    codec._BY_NAME["noted"] = kind
    means = fold._meaning
    noted: set[tuple[str, int]] = set()

    def meaning(state: TaskState, entry: Entry | Noted) -> TaskState:
        return state if isinstance(entry, Noted) else means(state, entry)

    def absorbed(state: TaskState, world: World) -> list[Entry]:
        if (state.run, state.epoch) in noted:
            return absorb(state, world)
        noted.add((state.run, state.epoch))
        return [Noted(at=world.now, epoch=state.epoch)]  # type: ignore[list-item]  # it is an entry of the next version

    fold._meaning = meaning
    runner.absorb = absorbed  # type: ignore[attr-defined]  # replaced, not used


if __name__ == "__main__":
    become()
    main(prog_name="aura")
