"""Journals of each schema as they were written once: this and every later version must fold them to the same state.

Lines are never edited. A later schema gets a file of its own beside this one.
"""

from __future__ import annotations

from pathlib import Path

from aura_operator.core.codec import decode, encode, schema_of
from aura_operator.core.entries import Claimed, Control, Decided, Proof, Usage, Verdict
from aura_operator.core.fold import fold
from aura_operator.core.journal import head_of
from aura_operator.core.lifecycle import Phase
from aura_operator.core.state import initial
from aura_operator.core.transcript import Inline, ModelReply, Secret, Steered, Stored, ToolReturn, UserInput

GOLDEN = Path(__file__).parent / "golden"
LINES = (GOLDEN / "schema-1.jsonl").read_text().splitlines()
QUESTIONS = (GOLDEN / "schema-2.jsonl").read_text().splitlines()
HEAD = "37d761e160cf89b1dcdd673f4332b0102f33e7bd4d90de426f3cb25480148f7b"


def test_the_golden_journal_of_schema_1_folds_to_the_state_it_meant() -> None:
    state = fold(initial(task="golden", run="run-1", user_input="fix it"), map(decode, LINES))
    assert (state.epoch, state.turns, state.steps, state.last_call) == (3, 4, 11, 7)
    assert state.usage == Usage(requests=4, input_tokens=460, output_tokens=61)
    assert state.recoveries == 0
    assert [(effect.call, effect.tool) for effect in state.unresolved] == [(6, "s__tell")]
    assert state.control is Control.RUN
    assert state.steering_consumed == 1
    assert state.finished is not None
    assert (state.finished.phase, state.finished.reason) == (Phase.SUCCEEDED, "Answered")
    told = [
        (item.call, item.is_error, item.payload.text if isinstance(item.payload, Inline) else item.payload.name)
        for item in state.transcript
        if isinstance(item, ToolReturn)
    ]
    assert told == [
        (1, False, "pods are fine"),
        (2, False, "golden-payload"),
        (3, True, "unknown tool 'x'; there are: s__read"),
        (4, False, "slept 30 s"),
        (5, False, "s__pay was interrupted and its answer was lost; bob found that it did happen: seen"),
        (
            6,
            True,
            "s__tell was called at 2026-11-29T03:02:00Z and its answer was lost: it may or may not have happened. "
            "It will not be called again by itself; look before you act.",
        ),
        (7, True, "s__drop was not called. Denied by carol: not tonight"),
    ]
    kinds = [type(item) for item in state.transcript]
    assert kinds[0] is UserInput
    assert kinds.count(ModelReply) == 4
    assert Steered(text="hurry", by="alice") in state.transcript
    payloads = [item.payload for item in state.transcript if isinstance(item, ModelReply)]
    assert isinstance(payloads[1], Stored)
    assert isinstance(payloads[2], Secret)


def test_the_golden_journal_has_every_kind_of_entry_and_the_head_it_had() -> None:
    assert head_of(LINES) == HEAD
    entries = [decode(line) for line in LINES]
    assert [encode(entry) for entry in entries] == LINES, "what is read is written the same again"
    assert len({type(entry) for entry in entries}) == 12
    assert {entry.proof for entry in entries if isinstance(entry, Claimed)} == {None, *Proof} - {Proof.RELEASED}
    assert {entry.verdict for entry in entries if isinstance(entry, Decided)} >= {Verdict.APPROVED, Verdict.DENIED}


def test_the_golden_journal_of_schema_2_folds_to_the_state_it_meant() -> None:
    entries = [decode(line) for line in QUESTIONS]
    assert [encode(entry) for entry in entries] == QUESTIONS, "what is read is written the same again"
    assert max(schema_of(entry) for entry in entries) == 2
    state = fold(initial(task="golden", run="run-2", user_input="fix it"), entries)
    told = [
        (item.call, item.is_error, item.payload.text)
        for item in state.transcript
        if isinstance(item, ToolReturn) and isinstance(item.payload, Inline)
    ]
    assert told == [
        (1, False, "bob answered: eu-west-1"),
        (2, True, "carol did not answer: not mine"),
        (3, True, "s__pay was not called. Denied by bob: changed"),
    ]
    assert state.finished is not None and state.finished.phase is Phase.SUCCEEDED
