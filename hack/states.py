"""docs/states.md, from the table of transitions: `python -m hack.states` writes it, `--check` says if it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from aura_operator.core.lifecycle import TRANSITIONS, Move, Phase, mermaid

PAGE = Path(__file__).parents[1] / "docs" / "states.md"
INTRODUCTION = """\
# The states of a task

Written by `python -m hack.states` from the one table of transitions, `aura_operator/core/lifecycle.py`; change that.
"""
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
    # Mermaid takes a second colon in a label for the beginning of another one.
    diagram = mermaid().replace("finish: ", "finish, ")
    parts = [
        INTRODUCTION,
        f"```mermaid\n{diagram}\n```\n",
        "\n".join(["| phase | means |", "| --- | --- |", *phases, ""]),
        "\n".join(["| write | from | to | who, and when |", "| --- | --- | --- | --- |", *moves, ""]),
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
