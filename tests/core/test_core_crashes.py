"""Any program, any crash point, fold again: no Once call starts twice per permission, none is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aura_operator.core.entries import (
    Choice,
    Outcome,
    Proof,
    Verdict,
)
from aura_operator.core.lifecycle import Desired
from tests.core.life import Life
from tests.core.programs import Program, programs

ACTIONS: dict[str, tuple[float, Callable[[Life], None]]] = {
    "run": (12, lambda life: life.run_on(3)),
    "run, unsent": (3, lambda life: life.run_on(2)),
    "run, unwritten": (3, lambda life: life.run_on(1)),
    "ok": (4, lambda life: life.come_back(Outcome.OK)),
    "error": (1, lambda life: life.come_back(Outcome.ERROR)),
    "answer lost": (3, lambda life: life.come_back(Outcome.UNKNOWN)),
    "container restarts": (3, lambda life: life.crash(Proof.CONTAINER_RESTARTED)),
    "lease expires": (2, lambda life: life.crash(Proof.LEASE_EXPIRED)),
    "released": (1, lambda life: life.crash(Proof.RELEASED)),
    "done": (3, lambda life: life.vote(Verdict.APPROVED, Choice.DONE)),
    "retry": (4, lambda life: life.vote(Verdict.APPROVED, Choice.RETRY)),
    "abort": (0.3, lambda life: life.vote(Verdict.APPROVED, Choice.ABORT)),
    "deny": (0.5, lambda life: life.vote(Verdict.DENIED)),
    "silence": (0.5, lambda life: life.vote(Verdict.EXPIRED)),
    "a minute": (2, lambda life: life.pass_time(61.0)),
    "an hour": (1, lambda life: life.pass_time(4000.0)),
    "pause": (0.5, lambda life: life.control(Desired.PAUSE)),
    "go on": (2, lambda life: life.control(Desired.RUN)),
    "cancel": (0.2, lambda life: life.control(Desired.CANCEL)),
}
"""What may happen, with weights: a task should live long enough to be crashed in all its places."""


@pytest.mark.behaviour(2, 3, 5, 19)
@settings(max_examples=300, deadline=None)
@given(program=programs, seed=st.integers(min_value=0))
def test_whatever_happens_no_effect_is_doubled_or_forgotten(program: Program, seed: int) -> None:
    life = Life(program)
    weights = [weight for weight, _ in ACTIONS.values()]
    # Not a list drawn by Hypothesis: its lists are short and alike, and few of them reach a second crash.
    for name in Random(seed).choices(list(ACTIONS), weights, k=50):
        ACTIONS[name][1](life)
        life.check()
    life.in_peace()
