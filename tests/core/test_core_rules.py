"""The small rules of core, as tables: lifecycle, effects, the journal's lines."""

from __future__ import annotations

import pytest

from aura_operator.core.codec import encode
from aura_operator.core.effects import Effect, ToolHints, ToolRule, policy_for
from aura_operator.core.entries import (
    Outcome,
    Result,
)
from aura_operator.core.journal import Segment, head_of, must_seal, verified
from aura_operator.core.lifecycle import TRANSITIONS, IllegalMoveError, Move, Phase, next_phase
from aura_operator.core.names import approval_name, idempotency_key
from aura_operator.core.text import dumps
from aura_operator.core.transcript import Inline
from aura_operator.errors import JournalError
from tests.core.journals import NOW

# Lifecycle


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("move", Move)
def test_only_the_moves_of_the_table_are_possible(phase: Phase, move: Move) -> None:
    if (phase, move) in TRANSITIONS:
        assert next_phase(phase, move) is TRANSITIONS[phase, move]
        return
    with pytest.raises(IllegalMoveError, match=phase.value):
        next_phase(phase, move)


def test_terminal_phases_lead_nowhere() -> None:
    assert {phase for phase, _ in TRANSITIONS if phase.terminal} == set()


# Effects


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        (None, Effect.ONCE),
        (ToolHints(), Effect.ONCE),
        (ToolHints(read_only=True, idempotent=False), Effect.READ),
        (ToolHints(read_only=False, idempotent=True), Effect.IDEMPOTENT),
    ],
)
def test_a_tool_that_says_nothing_is_once_and_needs_approval(hints: ToolHints | None, effect: Effect) -> None:
    policy = policy_for("k8s__x", (), hints)
    assert policy.effect is effect
    assert policy.approval_required is (effect is Effect.ONCE)
    assert not policy.declared


def test_the_first_rule_that_speaks_of_a_point_decides_it() -> None:
    rules = (
        ToolRule(match="k8s__pods_*", effect=Effect.READ),
        ToolRule(match="k8s__*", effect=Effect.ONCE, approval_required=False, timeout_seconds=5),
        ToolRule(match="*", sensitive=True),
    )
    policy = policy_for("k8s__pods_list", rules, ToolHints(idempotent=True), server_timeout_seconds=9)
    assert (policy.effect, policy.declared, policy.approval_required) == (Effect.READ, True, False)
    assert (policy.timeout_seconds, policy.sensitive) == (5, True)


# Journal


def test_a_changed_line_breaks_the_chain() -> None:
    lines = ("a", "b", "c")
    head = head_of(lines)
    assert verified(lines, start="", head=head, what="AuraTask ns/t") == lines
    with pytest.raises(JournalError, match="AuraTask ns/t"):
        verified(("a", "x", "c"), start="", head=head, what="AuraTask ns/t")


def test_sealing_starts_beyond_8_kib() -> None:
    assert not must_seal(["x" * 8192])
    assert must_seal(["x" * 8192, "y"])
    assert Segment(first=0, next=1, head_before="", head="h", lines=("a",), schema=1).previous == ()


def test_lone_surrogates_are_replaced_before_they_are_hashed() -> None:
    line = encode(Result(at=NOW, call=1, outcome=Outcome.OK, payload=Inline(text="bad \ud800 text")))
    assert "bad � text" in line
    assert dumps({"k\udfff": ["\ud83d\ude00"]}) == '{"k�":["😀"]}'


def test_names_and_keys() -> None:
    assert approval_name("disk-7f3", 9, 0) == "disk-7f3-9"
    assert approval_name("disk-7f3", 9, 2) == "disk-7f3-9-r2"
    assert idempotency_key("run", 4, "sha256:ab") == "run/4/ab"


def test_no_two_tasks_share_the_name_of_an_approval() -> None:
    tasks = ("fix", "fix-2", "fix-2-1", "fix-2-r1", "fix-r1")
    names = [approval_name(task, call, ask) for task in tasks for call in range(1, 12) for ask in range(3)]
    assert len(set(names)) == len(names)
