"""Approvals: when votes are a decision, what a decision allows, and for what it was given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aura_operator.core.approvals import Request, Terms, Vote, judge, mismatch
from aura_operator.core.decide import decide
from aura_operator.core.digests import digest_of
from aura_operator.core.entries import (
    Choice,
    Decided,
    Entry,
    Requested,
    RequestKind,
    Verdict,
)
from aura_operator.core.limits import Limits
from aura_operator.core.plan import CallPlan
from aura_operator.core.transcript import ToolReturn
from tests.core.journals import NOW, answered, folded

OPEN = Terms(kind=RequestKind.TOOL_CALL, quorum=1, expires_at=NOW + 10)
YES, NO = Vote(approved=True, reason="ok"), Vote(approved=False, reason="not now")


@pytest.mark.behaviour(15, 17, 20, 21, 23)
@pytest.mark.parametrize(
    ("terms", "votes", "at", "verdict", "by"),
    [
        (OPEN, {}, NOW, None, ()),
        (OPEN, {"bob": YES}, NOW, Verdict.APPROVED, ("bob",)),
        (OPEN, {"bob": NO}, NOW, Verdict.DENIED, ("bob",)),
        (OPEN, {}, NOW + 10, Verdict.EXPIRED, ()),
        (OPEN, {"bob": YES}, NOW + 10, Verdict.EXPIRED, ()),
        (Terms(kind=RequestKind.TOOL_CALL, quorum=2, expires_at=NOW + 10), {"bob": YES}, NOW, None, ()),
        (
            Terms(kind=RequestKind.TOOL_CALL, quorum=2, expires_at=NOW + 10),
            {"bob": YES, "carol": YES},
            NOW,
            Verdict.APPROVED,
            ("bob", "carol"),
        ),
        (
            Terms(kind=RequestKind.TOOL_CALL, quorum=2, expires_at=NOW + 10),
            {"bob": YES, "carol": NO},
            NOW,
            Verdict.DENIED,
            ("carol",),
        ),
        (
            Terms(kind=RequestKind.IN_DOUBT, quorum=2, expires_at=NOW + 10),
            {
                "bob": Vote(approved=True, choice=Choice.DONE),
                "carol": Vote(approved=True, choice=Choice.RETRY),
            },
            NOW,
            None,
            (),
        ),
    ],
)
def test_votes_become_a_decision(
    terms: Terms, votes: dict[str, Vote], at: float, verdict: Verdict | None, by: tuple[str, ...]
) -> None:
    decision = judge(terms, votes, at)
    assert (decision.verdict if decision else None, decision.by if decision else ()) == (verdict, by)


@pytest.mark.behaviour(20)
def test_an_expiry_names_the_votes_that_came_too_late() -> None:
    silent, late = judge(OPEN, {}, NOW + 11), judge(OPEN, {"bob": YES}, NOW + 11)
    assert silent is not None and silent.reason.startswith("nobody answered by 2027-01-15T08:00:10Z")
    assert late is not None and "bob (yes)" in late.reason


ASKED = Request(
    task="t", run="r", call=1, ask=0, kind=RequestKind.TOOL_CALL, tool="s__x", digest="sha256:1", schema="sha256:2"
)


@pytest.mark.behaviour(16)
@pytest.mark.parametrize(
    ("field", "value"),
    [("run", "r2"), ("call", 2), ("ask", 1), ("tool", "s__y"), ("digest", "sha256:9"), ("schema", "sha256:9")],
)
def test_an_approval_for_anything_else_is_none(field: str, value: Any) -> None:
    assert mismatch(ASKED, ASKED) is None
    wrong = mismatch(ASKED, replace(ASKED, **{field: value}))
    assert wrong is not None and field in wrong


@pytest.mark.behaviour(16)
def test_the_digest_is_over_bytes_not_values() -> None:
    assert digest_of('{"n":1.0}') != digest_of('{"n":1}')
    assert digest_of("{}") == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@pytest.mark.behaviour(16)
def test_a_tool_that_changed_is_asked_again_within_a_bound() -> None:
    entries: list[Entry] = [answered(CallPlan(call=1, part=0, tool="s__x", approval=True))]
    for ask in range(3):
        entries += [
            Requested(at=NOW, call=1, ask=ask, kind=RequestKind.TOOL_CALL, expires_at=NOW + 10),
            Decided(at=NOW, call=1, ask=ask, verdict=Verdict.STALE, reason="schema changed", schema="sha256:new"),
        ]
    (again,) = decide(folded(*entries[:-2]), Limits(expires_after_seconds=60), NOW).notes
    assert again == Requested(
        at=NOW, call=1, ask=2, kind=RequestKind.TOOL_CALL, expires_at=NOW + 60, schema="sha256:new"
    )
    state = folded(*entries)
    last = state.transcript[-1]
    assert isinstance(last, ToolReturn) and last.is_error
