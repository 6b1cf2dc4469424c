"""Timers, steering, pause, cancel, deadlines, and models that loop."""

from __future__ import annotations

import pytest

from aura_operator.core.absorb import SteeringText, World, absorb
from aura_operator.core.approvals import Decision
from aura_operator.core.commands import CallTool, WaitReason, Wanted
from aura_operator.core.decide import decide
from aura_operator.core.effects import Effect
from aura_operator.core.entries import (
    Claimed,
    Controlled,
    Entry,
    Intent,
    ModelFailed,
    Outcome,
    Proof,
    Requested,
    RequestKind,
    Result,
    Slept,
    Verdict,
)
from aura_operator.core.fold import fold
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.limits import Limits
from aura_operator.core.plan import CallPlan
from aura_operator.core.transcript import Inline, ToolReturn
from tests.core.journals import NOW, answered, folded

SLEEP = CallPlan(call=1, part=0, tool="sleep", effect=Effect.READ, timer_seconds=60.0)


@pytest.mark.behaviour(13)
def test_a_sleep_ends_at_its_original_time_whoever_folds_it() -> None:
    later = Claimed(at=NOW + 40, epoch=2, worker="w", incarnation="u.2", revision="r", proof=Proof.LEASE_EXPIRED)
    state = folded(answered(SLEEP), later)
    (wait,) = decide(state, Limits(), NOW + 50).waits
    assert wait.until == NOW + 60
    assert absorb(state, World(now=NOW + 59.9)) == []
    assert absorb(state, World(now=NOW + 60)) == [Slept(at=NOW + 60, call=1)]
    assert absorb(state, World(now=NOW + 59, fired=frozenset({"sleep-1"}))) == [Slept(at=NOW + 59, call=1)]


@pytest.mark.behaviour(26)
def test_steering_ends_a_timer_and_goes_in_with_the_next_model_request() -> None:
    world = World(now=NOW + 1, steering=(SteeringText(text="stop", by="alice"),))
    state = folded(answered(SLEEP))
    (slept,) = absorb(state, world)
    assert isinstance(slept, Slept) and slept.interrupted
    state = folded(answered(SLEEP), slept)
    (steered,) = absorb(state, world)
    assert (steered.position, steered.text) == (0, "stop")  # type: ignore[union-attr]
    assert absorb(folded(answered(SLEEP), slept, steered), world) == []


@pytest.mark.behaviour(25)
def test_cancel_asks_running_calls_to_stop_and_ends_when_their_outcome_is_known() -> None:
    plan = CallPlan(call=1, part=0, tool="s__x")
    running: list[Entry] = [answered(plan), Intent(at=NOW, call=1, key="k")]
    (control,) = absorb(folded(*running), World(now=NOW, desired=Desired.CANCEL))
    assert isinstance(control, Controlled)
    assert decide(folded(*running, control), Limits(), NOW) == Wanted()
    lost = Result(at=NOW, call=1, outcome=Outcome.UNKNOWN, payload=Inline(text="?"))
    state = folded(*running, control, lost)
    end = decide(state, Limits(), NOW).ending
    assert end is not None and end.phase is Phase.CANCELLED
    assert [effect.call for effect in state.unresolved] == [1]


@pytest.mark.behaviour(26)
def test_pause_lets_a_running_effect_end_and_starts_nothing() -> None:
    plans = (CallPlan(call=1, part=0, tool="s__x"), CallPlan(call=2, part=1, tool="s__y"))
    state = folded(answered(*plans), Intent(at=NOW, call=1, key="k"))
    (control,) = absorb(state, World(now=NOW, desired=Desired.PAUSE))
    state = fold(state, [control])
    wanted = decide(state, Limits(), NOW)
    assert wanted.work == (CallTool(call=1, attempt=1, keeps_outcome=True),)
    assert [wait.reason for wait in wanted.waits] == [WaitReason.PAUSED]


@pytest.mark.behaviour(25)
def test_the_active_deadline_counts_waiting() -> None:
    state = folded(answered(CallPlan(call=1, part=0, tool="s__x", approval=True)))
    (control,) = absorb(state, World(now=NOW + 5, deadline=NOW + 5))
    end = decide(fold(state, [control]), Limits(), NOW).ending
    assert end is not None and end.reason == "DeadlineExceeded"


@pytest.mark.behaviour(21)
def test_a_denial_reaches_the_model_word_for_word() -> None:
    state = folded(
        answered(CallPlan(call=1, part=0, tool="s__x", approval=True)),
        Requested(at=NOW, call=1, ask=0, kind=RequestKind.TOOL_CALL, expires_at=NOW + 10),
    )
    world = World(
        now=NOW, decisions={(1, 0): Decision(verdict=Verdict.DENIED, reason="not in *my* shift – bob", by=("bob",))}
    )
    state = fold(state, absorb(state, world))
    last = state.transcript[-1]
    assert isinstance(last, ToolReturn) and isinstance(last.payload, Inline)
    assert last.payload.text == "s__x was not called. Denied by bob: not in *my* shift – bob"


@pytest.mark.behaviour(29)
def test_a_model_that_loops_or_fails_for_ever_ends_visibly() -> None:
    turns = [answered(CallPlan(call=n, part=0, tool="x", refused="no")) for n in range(1, 4)]
    end = decide(folded(*turns), Limits(turns=3), NOW).ending
    assert end is not None and end.reason == "TurnLimit"
    failures = [ModelFailed(at=NOW, reason="ModelFailed", message="500", retry_at=NOW + 1) for _ in range(6)]
    assert [wait.reason for wait in decide(folded(*failures[:5]), Limits(), NOW).waits] == [WaitReason.MODEL_RETRY]
    assert [work.id for work in decide(folded(*failures[:5]), Limits(), NOW + 1).work] == ["model-1-6"]
    end = decide(folded(*failures), Limits(), NOW + 1).ending
    assert end is not None and end.reason == "ModelFailed"
