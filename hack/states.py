"""docs/states.md, from both tables of transitions: `python -m hack.states` writes it, `--check` says if it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from aura_operator.core import calls
from aura_operator.core.calls import Stage
from aura_operator.core.lifecycle import TRANSITIONS, Move, Phase, mermaid

PAGE = Path(__file__).parents[1] / "docs" / "states.md"
INTRODUCTION = """\
# The states of a task, and of a call

Written by `python -m hack.states` from the two tables of transitions: `aura_operator/core/lifecycle.py` for a task,
`aura_operator/core/calls.py` for a tool call. Change those.

## A task
"""
CALLS = """\
## A tool call

The promise rests on this table: the fold of the journal moves a call by it alone, and an entry for which it has no row
is refused. Whoever kills a process in the middle of a call moves it from *started* along one of the two rows that begin
with "owner lost".
"""
STAGES = {
    Stage.PLANNED: "the model asked for it; nothing was asked of people or done",
    Stage.REQUESTED: "a person is asked for permission",
    Stage.CLEARED: "may be started: permission is there, or none is needed (again)",
    Stage.STARTED: "its intent is written, its outcome isn't known: it may be under way",
    Stage.IN_DOUBT: "may or may not have happened, and nobody was asked yet",
    Stage.SETTLING: "a person is asked what became of it",
    Stage.QUESTIONED: "a person is asked what the model wants to know",
    Stage.CLOSED: "the model's answer to it is known",
}
WHO = {
    Move.CLAIM: "a worker takes it; the epoch grows",
    Move.APPEND: "its owner adds to the journal",
    Move.PARK: "its owner lets go: it waits for something",
    Move.RELEASE: "its owner hands it back",
    Move.ORPHAN: "the controller has proof that its owner is dead",
    Move.FIRE: "the controller: what it waits for has come",
    Move.SUCCEED: "its owner: the model gave its final answer",
    Move.FAIL: "its owner: a limit, an error that stays, an effect in doubt",
    Move.CANCEL: "its owner, or whoever claims it: `spec.desired` is Cancel",
}
MEANING = {
    Phase.PENDING: "wants a worker",
    Phase.RUNNING: "has an owner; nothing else has",
    Phase.WAITING: "parked: waits for a decision, a time or a person's Run, and holds no slot",
    Phase.SUCCEEDED: "ended, for good",
    Phase.FAILED: "ended, for good; `status.reason` says why ([Troubleshooting](troubleshooting.md))",
    Phase.CANCELLED: "ended, for good, as somebody desired",
}


def page() -> str:
    """The page as it should be."""
    phases = [f"| `{phase.value}` | {MEANING[phase]} |" for phase in Phase]
    moves = [
        f"| {move.value} | {source.value} | {target.value} | {WHO[move]} |"
        for (source, move), target in TRANSITIONS.items()
    ]
    rows = [
        f"| {source.value} | {cause.value} | {target.value} |" for (source, cause), target in calls.TRANSITIONS.items()
    ]
    # Mermaid takes a second colon in a label for the beginning of another one.
    diagram = mermaid().replace("finish: ", "finish, ")
    parts = [
        INTRODUCTION,
        f"```mermaid\n{diagram}\n```\n",
        "\n".join(["| phase | means |", "| --- | --- |", *phases, ""]),
        "\n".join(["| write | from | to | who, and when |", "| --- | --- | --- | --- |", *moves, ""]),
        CALLS,
        f"```mermaid\n{calls.mermaid()}\n```\n",
        "\n".join(
            ["| stage | means |", "| --- | --- |", *(f"| {stage.value} | {STAGES[stage]} |" for stage in Stage), ""]
        ),
        "\n".join(["| from | because | to |", "| --- | --- | --- |", *rows, ""]),
    ]
    return "\n".join(parts)


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text() == page():
            return 0
        print(f"{PAGE.name} is stale: run `python -m hack.states` and commit it", file=sys.stderr)
        return 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
