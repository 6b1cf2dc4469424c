"""The table of a call's life: what it has a row for is what the fold does, and nothing else."""

from __future__ import annotations

import pytest

from aura_operator.core import calls
from aura_operator.core.calls import TRANSITIONS, CallState, Cause, Stage, next_stage
from aura_operator.core.plan import CallPlan
from aura_operator.errors import DamagedJournalError

PLAN = CallPlan(call=1, part=0, tool="s__x")


@pytest.mark.behaviour(2)
@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("cause", Cause)
def test_a_call_moves_by_the_table_alone(stage: Stage, cause: Cause) -> None:
    call = CallState(plan=PLAN, planned_at=0.0, stage=stage)
    target = TRANSITIONS.get((stage, cause))
    if target is None:
        with pytest.raises(DamagedJournalError, match="call 1"):
            next_stage(call, cause)
    else:
        assert next_stage(call, cause) is target


def test_every_stage_is_reached_from_planned_and_leads_to_closed() -> None:
    reached, leads = {Stage.PLANNED}, {Stage.CLOSED}
    for _ in Stage:
        reached |= {target for (source, _), target in TRANSITIONS.items() if source in reached}
        leads |= {source for (source, _), target in TRANSITIONS.items() if target in leads}
    assert reached == leads == set(Stage)


def test_every_cause_has_a_row() -> None:
    assert {cause for _, cause in TRANSITIONS} == set(Cause)


@pytest.mark.behaviour(3, 36)
def test_only_permission_and_an_unmade_attempt_lead_to_a_start() -> None:
    """After a start nothing leads to another one but a cause that says: repeatable, or a person's Retry."""
    assert {source for (source, cause), target in TRANSITIONS.items() if target is Stage.STARTED} == {
        Stage.PLANNED,
        Stage.CLEARED,
    }
    again = {cause for (_, cause), target in TRANSITIONS.items() if target is Stage.CLEARED}
    assert again == {
        Cause.APPROVED,
        Cause.ANSWER_LOST_REPEATABLE,
        Cause.OWNER_LOST_REPEATABLE,
        Cause.SETTLED_RETRY,
    }


def test_the_diagram_has_every_row() -> None:
    drawn = calls.mermaid()
    assert drawn.count("-->") == len(TRANSITIONS) + 2
