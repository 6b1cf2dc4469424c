"""absorb(state, world) → entries: what people, clocks and other objects have said that the journal doesn't know yet.

Owns the reading of the world into the journal; the world is an argument. Called until it returns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aura_operator.core.approvals import Decision
from aura_operator.core.calls import Stage
from aura_operator.core.entries import (
    Control,
    Controlled,
    Decided,
    Entry,
    Slept,
    SteeringConsumed,
)
from aura_operator.core.instants import quantised
from aura_operator.core.lifecycle import Desired
from aura_operator.core.names import sleep_timer
from aura_operator.core.state import TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringText:
    """One element of `spec.steering`."""

    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What the outside says at `now` (Unix seconds). `decisions` by (call, ask); `fired`: names that the controller,
    whose clock counts, has found due; `deadline`: when the task's active time ends, None if never."""

    now: float
    desired: Desired = Desired.RUN
    steering: tuple[SteeringText, ...] = ()
    decisions: Mapping[tuple[int, int], Decision] = field(default_factory=dict)
    fired: frozenset[str] = frozenset()
    deadline: float | None = None


def absorb(state: TaskState, world: World) -> list[Entry]:
    """The entries that the world calls for now, in order; [] if the journal knows it all."""
    if state.finished is not None or state.control in (Control.CANCEL, Control.EXPIRED):
        return []
    control = _control(world)
    if control is not state.control:
        return [Controlled(at=quantised(world.now), control=control)]
    if state.control is Control.PAUSE:
        return []  # still unread when it goes on
    entries = [*_decisions(state, world), *_timers(state, world)]
    return entries or _steering(state, world)


def _control(world: World) -> Control:
    if world.desired is Desired.CANCEL:
        return Control.CANCEL
    if world.deadline is not None and world.now >= world.deadline:
        return Control.EXPIRED
    return Control(world.desired.value)


_ASKED = (Stage.REQUESTED, Stage.SETTLING, Stage.QUESTIONED)


def _decisions(state: TaskState, world: World) -> list[Entry]:
    entries: list[Entry] = []
    for call in state.open_calls:
        if call.stage not in _ASKED or call.requested is None:
            continue
        decision = world.decisions.get((call.plan.call, call.requested.ask))
        if decision is None:
            continue
        entries.append(
            Decided(
                at=quantised(world.now),
                call=call.plan.call,
                ask=call.requested.ask,
                verdict=decision.verdict,
                reason=decision.reason,
                by=decision.by,
                choice=decision.choice,
                answer=decision.answer,
            )
        )
    return entries


def _timers(state: TaskState, world: World) -> list[Entry]:
    steered = len(world.steering) > state.steering_consumed
    entries: list[Entry] = []
    for call in state.open_calls:
        if call.due_at is None:
            continue
        over = world.now >= call.due_at
        if over or steered or sleep_timer(call.plan.call) in world.fired:
            # A message fires the timer too, so its name among the fired doesn't say that its time was over.
            entries.append(Slept(at=quantised(world.now), call=call.plan.call, interrupted=steered and not over))
    return entries


def _steering(state: TaskState, world: World) -> list[Entry]:
    """Steering goes in with the next model request, so only when no call is open."""
    if state.open_calls or state.failure is not None:
        return []
    return [
        SteeringConsumed(at=quantised(world.now), position=position, text=steering.text, by=steering.by)
        for position, steering in enumerate(world.steering)
        if position >= state.steering_consumed
    ]
