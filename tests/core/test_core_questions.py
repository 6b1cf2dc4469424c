"""Questions of the model to people: asked, answered, refused, or left without an answer."""

from __future__ import annotations

import pytest

from aura_operator.core.absorb import World, absorb
from aura_operator.core.approvals import Decision, Terms, Vote, judge
from aura_operator.core.commands import WaitReason
from aura_operator.core.decide import decide
from aura_operator.core.effects import Effect
from aura_operator.core.entries import Claimed, Proof, Requested, RequestKind, Verdict
from aura_operator.core.fold import fold
from aura_operator.core.lifecycle import WaitKind
from aura_operator.core.limits import Limits
from aura_operator.core.plan import CallPlan
from aura_operator.core.state import TaskState
from aura_operator.core.transcript import Inline, ToolReturn
from tests.core.journals import NOW, answered, folded

LIMITS = Limits(expires_after_seconds=600)
ASK = CallPlan(call=1, part=0, tool="ask_user", effect=Effect.READ, question=True)
TERMS = Terms(kind=RequestKind.QUESTION, quorum=1, expires_at=NOW + 600)


def planned() -> TaskState:
    return folded(answered(ASK))


def asked() -> TaskState:
    return fold(planned(), decide(planned(), LIMITS, NOW).notes)


def told(state: TaskState) -> tuple[str, bool]:
    last = state.transcript[-1]
    assert isinstance(last, ToolReturn) and isinstance(last.payload, Inline)
    return last.payload.text, last.is_error


@pytest.mark.behaviour(47)
def test_a_question_is_put_to_people_and_waited_for() -> None:
    assert decide(planned(), LIMITS, NOW).notes == (
        Requested(at=NOW, call=1, ask=0, kind=RequestKind.QUESTION, expires_at=NOW + 600),
    )
    (wait,) = decide(asked(), LIMITS, NOW).waits
    assert (wait.reason, wait.kind) == (WaitReason.QUESTION_ASKED, WaitKind.QUESTION)
    assert (wait.name, wait.until) == ("t-1", NOW + 600)


@pytest.mark.behaviour(47)
@pytest.mark.parametrize(
    ("votes", "at", "text", "is_error"),
    [
        ({"bob": Vote(approved=True, answer="eu-west-1")}, NOW, "bob answered: eu-west-1", False),
        ({"bob": Vote(approved=False, reason="ask carol")}, NOW, "bob did not answer: ask carol", True),
        ({}, NOW + 600, "the question was not answered: nobody answered by 2027-01-15T08:10:00Z", True),
    ],
)
def test_the_model_reads_the_answer_or_why_there_is_none(
    votes: dict[str, Vote], at: float, text: str, is_error: bool
) -> None:
    decision = judge(TERMS, votes, at)
    assert decision is not None
    state = asked()
    state = fold(state, absorb(state, World(now=at, decisions={(1, 0): decision})))
    assert told(state) == (text, is_error)
    assert [work.id for work in decide(state, LIMITS, at).work] == ["model-2-1"]


@pytest.mark.behaviour(47)
def test_a_new_owner_waits_for_the_same_question_until_the_same_time() -> None:
    died = Claimed(at=NOW + 50, epoch=2, worker="v", incarnation="u.2", revision="r", proof=Proof.LEASE_EXPIRED)
    state = fold(asked(), [died])
    assert decide(state, LIMITS, NOW + 50) == decide(asked(), LIMITS, NOW)
    decision = Decision(verdict=Verdict.APPROVED, reason="", by=("bob",), answer="yes")
    state = fold(state, absorb(state, World(now=NOW + 51, decisions={(1, 0): decision})))
    assert told(state) == ("bob answered: yes", False)


def test_an_open_question_has_no_decision_yet() -> None:
    assert judge(TERMS, {}, NOW) is None
