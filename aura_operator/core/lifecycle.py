"""The phases of a task and every transition between them. Nothing else decides a transition.

The writes are those of store/task_writes.py and store/task_repairs.py; docs/states.md is generated from this table.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    PENDING = "Pending"  # wants a worker
    RUNNING = "Running"  # has an owner, and nothing else has
    WAITING = "Waiting"  # parked: holds no slot
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def terminal(self) -> bool:
        return self in _TERMINAL


_TERMINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED})


class Desired(Enum):
    """What a person wants of the task. Cancel is final."""

    RUN = "Run"
    PAUSE = "Pause"
    CANCEL = "Cancel"


class WaitKind(Enum):
    """What a parked task waits for."""

    APPROVAL = "Approval"
    TIMER = "Timer"
    CHILD = "Child"
    QUESTION = "Question"
    TURN = "Turn"
    PAUSE = "Pause"

    @property
    def of_people(self) -> bool:
        """Whether it rests on an AuraApproval, which people decide."""
        return self in (WaitKind.APPROVAL, WaitKind.QUESTION)

    @property
    def by_clock(self) -> bool:
        """Whether it ends by itself, in the ordinary way, when its time has come."""
        return self is WaitKind.TIMER


class Move(Enum):
    """The writes that touch a phase."""

    CLAIM = "claim"
    APPEND = "append"
    PARK = "park"
    RELEASE = "release"
    ORPHAN = "orphan"
    FIRE = "fire"
    SUCCEED = "finish: succeeded"
    FAIL = "finish: failed"
    CANCEL = "finish: cancelled"


TRANSITIONS: dict[tuple[Phase, Move], Phase] = {
    (Phase.PENDING, Move.CLAIM): Phase.RUNNING,
    (Phase.PENDING, Move.FIRE): Phase.PENDING,  # a second wake-up before anybody claimed
    (Phase.RUNNING, Move.APPEND): Phase.RUNNING,
    (Phase.RUNNING, Move.PARK): Phase.WAITING,
    (Phase.RUNNING, Move.RELEASE): Phase.PENDING,
    (Phase.RUNNING, Move.ORPHAN): Phase.PENDING,
    (Phase.RUNNING, Move.SUCCEED): Phase.SUCCEEDED,
    (Phase.RUNNING, Move.FAIL): Phase.FAILED,
    (Phase.RUNNING, Move.CANCEL): Phase.CANCELLED,
    (Phase.WAITING, Move.FIRE): Phase.PENDING,
}

FINISH_MOVES = {Phase.SUCCEEDED: Move.SUCCEED, Phase.FAILED: Move.FAIL, Phase.CANCELLED: Move.CANCEL}


class IllegalMoveError(ValueError):
    """The table has no such transition; nothing was changed."""


def next_phase(phase: Phase, move: Move) -> Phase:
    """The phase after a write. Raises IllegalMoveError where the table has none."""
    try:
        return TRANSITIONS[phase, move]
    except KeyError:
        raise IllegalMoveError(f"a task that is {phase.value} has no {move.value}") from None


def mermaid() -> str:
    """The table as a Mermaid state diagram, terminal phases leading to the end."""
    lines = ["stateDiagram-v2", "  [*] --> Pending"]
    lines += [f"  {source.value} --> {target.value}: {move.value}" for (source, move), target in TRANSITIONS.items()]
    lines += [f"  {phase.value} --> [*]" for phase in Phase if phase.terminal]
    return "\n".join(lines)
