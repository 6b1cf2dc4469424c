"""Random agent programs and the answers a model would give, for the pure crash tests. Owns the strategy only."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from aura_operator.core.effects import Effect, OnInDoubt


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """One call of a turn, as the program wants it."""

    effect: Effect = Effect.ONCE
    declared: bool = True
    approval: bool = False
    on_in_doubt: OnInDoubt = OnInDoubt.ASK
    timer_seconds: float | None = None
    question: bool = False


Program = tuple[tuple[PlannedCall, ...], ...]
"""Turns, each with the calls that the model makes side by side. After the last turn it answers."""

_tools = st.builds(
    PlannedCall,
    effect=st.sampled_from(Effect),
    declared=st.booleans(),
    approval=st.booleans(),
    on_in_doubt=st.sampled_from(OnInDoubt),
)
_questions = st.just(PlannedCall(effect=Effect.READ, question=True))
_sleeps = st.builds(PlannedCall, effect=st.just(Effect.READ), timer_seconds=st.sampled_from([1.0, 30.0, 3600.0]))

programs = st.lists(
    st.lists(st.one_of(_tools, _tools, _tools, _sleeps, _questions), min_size=1, max_size=3).map(tuple),
    min_size=1,
    max_size=3,
).map(tuple)
