"""The small rules of core, as tables: lifecycle, effects, approvals, ownership, timers, limits."""

from __future__ import annotations

import pytest

from aura_operator.core.absorb import SteeringText, World, absorb
from aura_operator.core.approvals import Decision, Request, Terms, Vote, judge, mismatch
from aura_operator.core.codec import encode
from aura_operator.core.commands import CallTool, Wanted
from aura_operator.core.decide import decide
from aura_operator.core.digests import digest_of
from aura_operator.core.effects import Effect, ToolHints, ToolRule, policy_for
from aura_operator.core.entries import (
    Choice,
    Claimed,
    Controlled,
    Decided,
    Entry,
    Intent,
    ModelAnswered,
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
from aura_operator.core.journal import Segment, head_of, must_seal, verified
from aura_operator.core.lifecycle import TRANSITIONS, Desired, IllegalMoveError, Move, Phase, next_phase
from aura_operator.core.limits import Limits
from aura_operator.core.names import approval_name, idempotency_key
from aura_operator.core.ownership import (
    LEASE_SECONDS,
    Contact,
    LeaseView,
    Owner,
    incarnation_of,
    proof_of_death,
    rank,
)
from aura_operator.core.plan import CallPlan
from aura_operator.core.state import TaskState, initial
from aura_operator.core.text import dumps
from aura_operator.core.transcript import Inline, ToolReturn
from aura_operator.errors import JournalError

NOW = 1_800_000_000.0


def folded(*entries: Entry) -> TaskState:
    first = Claimed(at=NOW, epoch=1, worker="w", incarnation="u.1", revision="r")
    return fold(initial(task="t", run="run", user_input="go"), [first, *entries])


def answered(*plans: CallPlan) -> ModelAnswered:
    return ModelAnswered(at=NOW, started=NOW, payload=Inline(text="{}"), calls=plans)


# Lifecycle


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("move", Move)
def test_only_the_moves_of_the_table_are_possible(phase: Phase, move: Move) -> None:
    if (phase, move) in TRANSITIONS:
        assert next_phase(phase, move) is TRANSITIONS[phase, move]
        return
    with pytest.raises(IllegalMoveError, match=phase.value):
        next_phase(phase, move)


def test_terminal_phases_lead_nowhere() -> None:
    assert {phase for phase, _ in TRANSITIONS if phase.terminal} == set()


# Effects


@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        (None, Effect.ONCE),
        (ToolHints(), Effect.ONCE),
        (ToolHints(read_only=True, idempotent=False), Effect.READ),
        (ToolHints(read_only=False, idempotent=True), Effect.IDEMPOTENT),
    ],
)
def test_a_tool_that_says_nothing_is_once_and_needs_approval(hints: ToolHints | None, effect: Effect) -> None:
    policy = policy_for("k8s__x", (), hints)
    assert policy.effect is effect
    assert policy.approval_required is (effect is Effect.ONCE)
    assert not policy.declared


def test_the_first_rule_that_speaks_of_a_point_decides_it() -> None:
    rules = (
        ToolRule(match="k8s__pods_*", effect=Effect.READ),
        ToolRule(match="k8s__*", effect=Effect.ONCE, approval_required=False, timeout_seconds=5),
        ToolRule(match="*", sensitive=True),
    )
    policy = policy_for("k8s__pods_list", rules, ToolHints(idempotent=True), server_timeout_seconds=9)
    assert (policy.effect, policy.declared, policy.approval_required) == (Effect.READ, True, False)
    assert (policy.timeout_seconds, policy.sensitive) == (5, True)


# Approvals

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
def test_an_approval_for_anything_else_is_none(field: str, value: object) -> None:
    from dataclasses import replace

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


# Ownership

POD, OTHER_POD = "pod-1", "pod-2"
ALICE = Owner(worker="w", incarnation=incarnation_of(POD, "a"))


def lease(incarnation: str, pod: str) -> LeaseView:
    return LeaseView(worker="w", incarnation=incarnation, pod_uid=pod, duration_seconds=LEASE_SECONDS, free_slots=1)


LONG, SHORT = LEASE_SECONDS, LEASE_SECONDS - 0.1


@pytest.mark.behaviour(7, 8)
@pytest.mark.parametrize(
    ("seen", "uninterrupted", "unchanged", "proof"),
    [
        (lease(ALICE.incarnation, POD), LONG, SHORT, None),
        (lease(ALICE.incarnation, POD), LONG, LONG, Proof.LEASE_EXPIRED),
        (lease(ALICE.incarnation, POD), SHORT, LONG, None),
        (lease(incarnation_of(POD, "b"), POD), 0, 0, Proof.CONTAINER_RESTARTED),
        (lease(incarnation_of(OTHER_POD, "b"), OTHER_POD), 0, 0, None),
        (lease(incarnation_of(OTHER_POD, "b"), OTHER_POD), LONG, LONG, Proof.LEASE_EXPIRED),
        (None, LONG, SHORT, None),
        (None, LONG, LONG, Proof.LEASE_EXPIRED),
    ],
)
def test_proof_of_death(seen: LeaseView | None, uninterrupted: float, unchanged: float, proof: Proof | None) -> None:
    contact = Contact(uninterrupted_seconds=uninterrupted, unchanged_seconds=unchanged)
    assert proof_of_death(ALICE, seen, contact) is proof


def test_ranks_are_a_permutation_and_one_that_leaves_moves_only_its_share() -> None:
    workers = [f"w{number}" for number in range(5)]
    for uid in (f"task-{number}" for number in range(50)):
        ranks = {worker: rank(uid, worker, workers) for worker in workers}
        assert sorted(ranks.values()) == list(range(5))
        first = min(ranks, key=ranks.__getitem__)
        gone = next(worker for worker in workers if worker != first)
        assert rank(uid, first, [worker for worker in workers if worker != gone]) == 0


@pytest.mark.behaviour(12)
def test_a_task_that_kills_its_workers_ends_as_poisoned_and_hand_overs_do_not_count() -> None:
    def lives(proof: Proof, count: int) -> list[Entry]:
        return [
            Claimed(at=NOW, epoch=epoch, worker="w", incarnation=f"u.{epoch}", revision="r", proof=proof)
            for epoch in range(2, 2 + count)
        ]

    limits = Limits(recoveries=5)
    assert [work.id for work in decide(folded(*lives(Proof.CONTAINER_RESTARTED, 5)), limits, NOW).work] == ["model-1-1"]
    end = decide(folded(*lives(Proof.CONTAINER_RESTARTED, 6)), limits, NOW).ending
    assert end is not None and (end.phase, end.reason) == (Phase.FAILED, "Poisoned")
    assert [work.id for work in decide(folded(*lives(Proof.RELEASED, 20)), limits, NOW).work] == ["model-1-1"]
    progress = [*lives(Proof.CONTAINER_RESTARTED, 5), answered(CallPlan(call=1, part=0, tool="s__x"))]
    assert folded(*progress).recoveries == 0


# Timers, steering, control

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
    running = [answered(plan), Intent(at=NOW, call=1, key="k")]
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
    assert [wait.reason for wait in wanted.waits] == ["Paused"]


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
    assert [wait.reason for wait in decide(folded(*failures[:5]), Limits(), NOW).waits] == ["ModelRetry"]
    assert [work.id for work in decide(folded(*failures[:5]), Limits(), NOW + 1).work] == ["model-1-6"]
    end = decide(folded(*failures), Limits(), NOW + 1).ending
    assert end is not None and end.reason == "ModelFailed"


# Journal


def test_a_changed_line_breaks_the_chain() -> None:
    lines = ("a", "b", "c")
    head = head_of(lines)
    assert verified(lines, start="", head=head, what="AuraTask ns/t") == lines
    with pytest.raises(JournalError, match="AuraTask ns/t"):
        verified(("a", "x", "c"), start="", head=head, what="AuraTask ns/t")


def test_sealing_starts_beyond_8_kib() -> None:
    assert not must_seal(["x" * 8192])
    assert must_seal(["x" * 8192, "y"])
    assert Segment(first=0, next=1, head_before="", head="h", lines=("a",), schema=1).previous == ()


def test_lone_surrogates_are_replaced_before_they_are_hashed() -> None:
    line = encode(Result(at=NOW, call=1, outcome=Outcome.OK, payload=Inline(text="bad \ud800 text")))
    assert "bad � text" in line
    assert dumps({"k\udfff": ["\ud83d\ude00"]}) == '{"k�":["😀"]}'


def test_names_and_keys() -> None:
    assert approval_name("disk-7f3", 9, 0) == "disk-7f3-9"
    assert approval_name("disk-7f3", 9, 2) == "disk-7f3-9-r2"
    assert idempotency_key("run", 4, "sha256:ab") == "run/4/ab"


def test_no_two_tasks_share_the_name_of_an_approval() -> None:
    tasks = ("fix", "fix-2", "fix-2-1", "fix-2-r1", "fix-r1")
    names = [approval_name(task, call, ask) for task in tasks for call in range(1, 12) for ask in range(3)]
    assert len(set(names)) == len(names)
