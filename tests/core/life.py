"""One task under crashes, in pure core: a machine that plays runner, journal, tool server, clock and people.

What was recorded but not written is lost with a crash; what was sent stays in the ledger. Owns what must hold too.
"""

from __future__ import annotations

import pytest

from aura_operator.core.absorb import World, absorb
from aura_operator.core.approvals import Decision
from aura_operator.core.codec import decode, encode
from aura_operator.core.commands import CallModel, CallTool, Wanted
from aura_operator.core.decide import decide
from aura_operator.core.effects import Effect
from aura_operator.core.entries import (
    Choice,
    Claimed,
    Decided,
    Entry,
    Intent,
    ModelAnswered,
    Outcome,
    Proof,
    Requested,
    RequestKind,
    Result,
    Usage,
    Verdict,
)
from aura_operator.core.fold import apply, fold
from aura_operator.core.lifecycle import Desired
from aura_operator.core.limits import Limits
from aura_operator.core.names import idempotency_key
from aura_operator.core.plan import CallPlan
from aura_operator.core.state import TaskState, initial
from aura_operator.core.transcript import Inline
from aura_operator.errors import JournalError
from tests.core.programs import Program

START = 1_800_000_000.0
LIMITS = Limits(turns=50, recoveries=1_000, expires_after_seconds=600)


class Life:
    """One task under crashes. `sent` is the ledger; `granted` counts what people and plans have permitted."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.now = START
        self.durable: list[str] = []
        self.unwritten: list[str] = []
        self.sent: list[tuple[int, str]] = []
        self.in_flight: set[int] = set()
        self.waiting_for_barrier: dict[int, int] = {}  # call → entries that must be written before it is sent
        self.decisions: dict[tuple[int, int], Decision] = {}
        self.desired = Desired.RUN
        self.state = self.begun()
        self.claim(None)

    def begun(self) -> TaskState:
        return initial(task="t", run="run", user_input="go")

    def record(self, entry: Entry) -> None:
        self.state = apply(self.state, entry)
        self.unwritten.append(encode(entry))

    def claim(self, proof: Proof | None) -> None:
        epoch = self.state.epoch + 1
        entry = Claimed(at=self.now, epoch=epoch, worker="w", incarnation=f"u.{epoch}", revision="r", proof=proof)
        self.record(entry)
        self.write()

    def world(self) -> World:
        return World(now=self.now, desired=self.desired, decisions=self.decisions)

    def run_on(self, far: int) -> None:
        """Goes on, and comes so far that a crash may hit before the write, before the send, or in the call."""
        if self.state.finished is not None:
            return
        self.step()
        if far >= 2:
            self.write()
        if far >= 3:
            self.send()

    def write(self) -> None:
        self.durable += self.unwritten
        self.unwritten.clear()

    def step(self) -> None:
        """What the runner does between two waits."""
        while entries := absorb(self.state, self.world()):
            for entry in entries:
                self.record(entry)
        wanted = decide(self.state, LIMITS, self.now)
        calls = {work.call for work in wanted.work if isinstance(work, CallTool)}
        for call in [call for call in self.in_flight if call not in calls]:
            self.finish_call(call, Outcome.UNKNOWN)
        for call in [call for call in self.waiting_for_barrier if call not in calls]:
            del self.waiting_for_barrier[call]
            self.result(call, Outcome.NOT_SENT)
        for note in wanted.notes:
            self.record(note)
        for work in wanted.work:
            match work:
                case CallModel():
                    self.answer()
                case CallTool():
                    self.start(work)
        if wanted.ending is not None:
            self.record(wanted.ending)

    def answer(self) -> None:
        if any('"k":"model"' in line for line in self.unwritten):
            return  # no second response waits unwritten
        turn = self.program[self.state.turns] if self.state.turns < len(self.program) else ()
        plans = tuple(
            CallPlan(
                call=number,
                part=number,
                tool=f"s__t{number}",
                effect=call.effect,
                declared=call.declared,
                approval=call.approval and call.timer_seconds is None and not call.question,
                on_in_doubt=call.on_in_doubt,
                digest="sha256:same",
                timer_seconds=call.timer_seconds,
                question=call.question,
            )
            for number, call in enumerate(turn, self.state.last_call + 1)
        )
        self.record(
            ModelAnswered(
                at=self.now, started=self.now, payload=Inline(text="{}"), calls=plans, usage=Usage(requests=1)
            )
        )

    def start(self, command: CallTool) -> None:
        call = self.state.call(command.call)
        if command.call in self.in_flight or command.call in self.waiting_for_barrier:
            return
        if call.plan.needs_intent:
            key = idempotency_key(self.state.run, command.call, call.plan.digest)
            self.record(Intent(at=self.now, call=command.call, key=key, ask=call.permitted_ask))
            self.waiting_for_barrier[command.call] = len(self.durable) + len(self.unwritten)
        else:
            self.waiting_for_barrier[command.call] = 0

    def send(self) -> None:
        """Sends what its barrier no longer holds back."""
        for call, position in list(self.waiting_for_barrier.items()):
            if len(self.durable) >= position:
                del self.waiting_for_barrier[call]
                plan = self.state.call(call).plan
                self.sent.append((call, idempotency_key(self.state.run, call, plan.digest)))
                self.in_flight.add(call)

    def come_back(self, outcome: Outcome) -> None:
        if self.in_flight and self.state.finished is None:
            self.finish_call(next(iter(self.in_flight)), outcome)

    def finish_call(self, call: int, outcome: Outcome) -> None:
        self.in_flight.remove(call)
        self.result(call, outcome)

    def result(self, call: int, outcome: Outcome) -> None:
        self.record(Result(at=self.now, call=call, outcome=outcome, payload=Inline(text=outcome.value)))

    def crash(self, proof: Proof) -> None:
        """The owner is gone with all that it had not written; the next one folds what is there."""
        if self.state.finished is not None:
            return
        self.unwritten.clear()
        self.in_flight.clear()
        self.waiting_for_barrier.clear()
        self.state = fold(self.begun(), (decode(line) for line in self.durable))
        if self.state.finished is None:
            self.claim(proof)

    def vote(self, verdict: Verdict, choice: Choice | None = None) -> None:
        """A person (or silence) answers the oldest open question."""
        for call in self.state.open_calls:
            if call.requested is None or (call.plan.call, call.requested.ask) in self.decisions:
                continue
            kind = call.requested.kind
            decision = Decision(
                verdict=verdict,
                reason="so",
                by=("bob",),
                choice=choice if kind is RequestKind.IN_DOUBT else None,
                answer="42" if kind is RequestKind.QUESTION else None,
            )
            self.decisions[call.plan.call, call.requested.ask] = decision
            return

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def control(self, desired: Desired) -> None:
        if self.desired is not Desired.CANCEL:
            self.desired = desired

    # What must hold

    def entries(self) -> list[Entry]:
        return [decode(line) for line in self.durable + self.unwritten]

    def once_starts_at_most_once_per_permission(self) -> None:
        permitted: dict[int, int] = {}
        plans: dict[int, CallPlan] = {}
        kinds: dict[tuple[int, int], RequestKind] = {}
        for entry in self.entries():
            if isinstance(entry, ModelAnswered):
                plans |= {plan.call: plan for plan in entry.calls}
                permitted |= {plan.call: 0 if plan.approval else 1 for plan in entry.calls}
            elif isinstance(entry, Requested):
                kinds[entry.call, entry.ask] = entry.kind
            elif isinstance(entry, Decided) and entry.verdict is Verdict.APPROVED:
                asked = kinds[entry.call, entry.ask]
                if asked is RequestKind.TOOL_CALL or entry.choice is Choice.RETRY:
                    permitted[entry.call] += 1
        for call, plan in plans.items():
            starts = sum(1 for sent, _ in self.sent if sent == call)
            if plan.effect is Effect.ONCE:
                assert starts <= permitted[call], f"call {call} was sent {starts} times, permitted {permitted[call]}"
            if plan.approval and not permitted[call]:
                assert starts == 0, f"call {call} was sent without permission"

    def a_sent_effect_is_known_or_unresolved(self) -> None:
        """What a crash right now would leave: each sent effect has a durable outcome or is named as unresolved."""
        durable = [decode(line) for line in self.durable]
        state = fold(self.begun(), durable)
        unresolved = {effect.call for effect in state.unresolved}
        settled = {
            entry.call
            for entry in durable
            if (isinstance(entry, Result) and entry.outcome is not Outcome.UNKNOWN)
            or (isinstance(entry, Decided) and entry.choice is Choice.DONE)
        }
        plans = {plan.call: plan for entry in durable if isinstance(entry, ModelAnswered) for plan in entry.calls}
        for call, _ in self.sent:
            if call in plans and plans[call].effect is not Effect.READ:
                assert call in unresolved | settled, f"call {call} was sent and is forgotten"

    def the_live_state_is_what_a_fold_finds(self) -> None:
        assert fold(self.begun(), self.entries()) == self.state

    def one_key_per_call(self) -> None:
        calls = {call for call, _ in self.sent}
        assert len(set(self.sent)) == len(calls) == len({key for _, key in self.sent})

    def the_end_absorbs(self) -> None:
        if self.state.finished is not None:
            assert absorb(self.state, self.world()) == []
            assert decide(self.state, LIMITS, self.now) == Wanted()
            with pytest.raises(JournalError):
                apply(self.state, Result(at=self.now, call=1, outcome=Outcome.OK, payload=Inline(text="late")))

    def check(self) -> None:
        self.once_starts_at_most_once_per_permission()
        self.a_sent_effect_is_known_or_unresolved()
        self.the_live_state_is_what_a_fold_finds()
        self.one_key_per_call()
        self.the_end_absorbs()

    def in_peace(self) -> None:
        """Left alone by faults, with people and clocks that answer, the task comes to its end."""
        if self.desired is Desired.PAUSE:
            self.desired = Desired.RUN
        for _ in range(300):
            if self.state.finished is not None:
                break
            self.step()
            self.write()
            self.send()
            for call in list(self.in_flight):
                self.finish_call(call, Outcome.OK)
            self.vote(Verdict.APPROVED, Choice.DONE)
            self.now += 4000.0
            self.check()
        assert self.state.finished is not None, f"still wants {decide(self.state, LIMITS, self.now)}"
