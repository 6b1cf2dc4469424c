"""The number of a journal: each entry says what it needs. What a newer version wrote is told from what is damaged."""

from __future__ import annotations

import pytest

from aura_operator.core.codec import SCHEMA, decode, encode, known, schema_of
from aura_operator.core.entries import (
    Claimed,
    Decided,
    Entry,
    Finished,
    Requested,
    RequestKind,
    Verdict,
)
from aura_operator.core.kinds import KINDS, QUESTIONS_SINCE
from aura_operator.core.lifecycle import Phase
from aura_operator.core.plan import CallPlan
from aura_operator.errors import DamagedJournalError, NewerJournalError
from tests.core.journals import NOW, answered

SLEEP = CallPlan(call=1, part=0, tool="sleep", timer_seconds=5.0)
ASK = CallPlan(call=1, part=0, tool="ask_user", question=True)


def requested(kind: RequestKind) -> Requested:
    return Requested(at=NOW, call=1, ask=0, kind=kind, expires_at=NOW + 60)


def decided(answer: str | None) -> Decided:
    return Decided(at=NOW, call=1, ask=0, verdict=Verdict.APPROVED, reason="", by=("bob",), answer=answer)


@pytest.mark.behaviour(14, 48)
@pytest.mark.parametrize(
    ("entry", "schema"),
    [
        (Claimed(at=NOW, epoch=1, worker="w", incarnation="u.1", revision="r"), 1),
        (answered(SLEEP), 1),
        (answered(ASK), QUESTIONS_SINCE),
        (requested(RequestKind.TOOL_CALL), 1),
        (requested(RequestKind.IN_DOUBT), 1),
        (requested(RequestKind.QUESTION), QUESTIONS_SINCE),
        (decided(None), 1),
        (decided("42"), QUESTIONS_SINCE),
        (Finished(at=NOW, phase=Phase.SUCCEEDED, reason="Answered"), 1),
    ],
)
def test_an_entry_needs_no_more_than_what_is_in_it(entry: Entry, schema: int) -> None:
    assert schema_of(entry) == schema
    assert decode(encode(entry)) == entry


def test_no_kind_is_newer_than_this_version() -> None:
    assert max(kind.since for kind in KINDS) <= SCHEMA and QUESTIONS_SINCE <= SCHEMA
    assert known(SCHEMA) and not known(SCHEMA + 1)


@pytest.mark.behaviour(14)
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"k":"dreamt","at":"2026-11-29T03:00:01.000Z"}', NewerJournalError),
        ('{"k":"control","at":"2026-11-29T03:00:01.000Z","control":"Ponder"}', NewerJournalError),
        ('{"k":"control","at":"2026-11-29T03:00:01.000Z"}', DamagedJournalError),
        ('{"k":"control","at":"yesterday","control":"Run"}', DamagedJournalError),
        ('{"at":"2026-11-29T03:00:01.000Z"}', DamagedJournalError),
        ('["k"]', DamagedJournalError),
        ("not json", DamagedJournalError),
        ('{"k":"model","at":"2026-11-29T03:00:01.000Z","started":"2026-11-29T03:00:01.000Z","usage":[],"payload":""}',
         DamagedJournalError),
    ],
)  # fmt: skip
def test_what_a_newer_version_wrote_is_not_taken_for_damage(line: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode(line)
