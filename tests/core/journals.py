"""Journals for tests: a claim and what follows. Owns no rule."""

from __future__ import annotations

from aura_operator.core.entries import Claimed, Entry, ModelAnswered
from aura_operator.core.fold import fold
from aura_operator.core.plan import CallPlan
from aura_operator.core.state import TaskState, initial
from aura_operator.core.transcript import Inline

NOW = 1_800_000_000.0


def folded(*entries: Entry) -> TaskState:
    """The state of a task after its first claim and these entries."""
    first = Claimed(at=NOW, epoch=1, worker="w", incarnation="u.1", revision="r")
    return fold(initial(task="t", run="run", user_input="go"), [first, *entries])


def answered(*plans: CallPlan) -> ModelAnswered:
    """A model's response that asks for these calls."""
    return ModelAnswered(at=NOW, started=NOW, payload=Inline(text="{}"), calls=plans)
