"""What the owner says of its task in status, beside the journal: summary, conditions, progress, unresolved effects.

Owns the sentences; times are absolute, so that a parked task needs no rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aura_operator.core.calls import CallState, Stage
from aura_operator.core.commands import Await, WaitReason
from aura_operator.core.entries import Finished, RequestKind
from aura_operator.core.instants import to_second_text
from aura_operator.core.lifecycle import Phase
from aura_operator.core.state import TaskState
from aura_operator.core.text import dumps
from aura_operator.errors import ToolServerError
from aura_operator.store.conditions import Condition, conditions_of, going_on, updated
from aura_operator.store.resources import Manifest
from aura_operator.store.task_fields import StatusFields, journal_facts

SUMMARY_LIMIT = 1000

Deciders = Callable[[RequestKind], str]
"""Says in words who may decide a request of that kind."""


def running(state: TaskState, now: float) -> StatusFields:
    """The fields of a task that is being run. `now` is when its last entry was recorded."""
    return {**journal_facts(state, now), "summary": _running_summary(state)}


def left(why: str) -> StatusFields:
    """The fields of a task that its owner gives back."""
    return {"summary": _cut(why)}


def _running_summary(state: TaskState) -> str:
    calls = [call.plan for call in state.open_calls if call.stage in (Stage.PLANNED, Stage.CLEARED, Stage.STARTED)]
    if not calls:
        return _cut(f"model turn {state.turns + 1}")
    return _cut("; ".join(f"call {plan.call}: {plan.tool}" for plan in calls))


def parked(state: TaskState, waits: Sequence[Await], *, task: Manifest, deciders: Deciders, now: float) -> StatusFields:
    """The fields of a task that parks."""
    wait = _foremost(waits)
    told = _WORDS[wait.reason](state, wait, deciders)
    condition = Condition(type="Parked", holds=True, reason=wait.reason.value, message=told.message)
    return {
        **journal_facts(state, now),
        "summary": _cut(told.summary),
        "conditions": updated(conditions_of(task), condition, now=now),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is said of a wait: in the summary, and in the condition `Parked`."""

    summary: str
    message: str


def _foremost(waits: Sequence[Await]) -> Await:
    """The wait that is told: what needs a person comes first, then a pause, then the timer that ends first."""
    of_people = [wait for wait in waits if wait.kind.of_people]
    endless = [wait for wait in waits if wait.until is None]
    return next(iter([*of_people, *endless]), None) or min(waits, key=_end)


def _approval_required(state: TaskState, wait: Await, deciders: Deciders) -> _Told:
    tool, until = _call(state, wait).plan.tool, _until(wait)
    who = deciders(RequestKind.TOOL_CALL)
    return _Told(
        summary=f"approval {wait.name}: {tool}, to {until}",
        message=f"{tool} waits for {who} until {until}; unanswered means NOT run. {_look(wait)}"
        f"Decide: {decide_command(wait.name)} (false denies; the model reads the reason)",
    )


def _in_doubt(state: TaskState, wait: Await, deciders: Deciders) -> _Told:
    tool, until = _call(state, wait).plan.tool, _until(wait)
    call = _call(state, wait)
    since = to_second_text(call.started_at or call.planned_at)
    who = deciders(RequestKind.IN_DOUBT)
    return _Told(
        summary=f"IN DOUBT {wait.name}: {tool} of {since} may have happened; answer by {until}",
        message=f"{tool} was called at {since} and its answer was lost: it may or may not have happened. "
        f"{who} can settle it until {until}; unanswered, the task fails and the effect stays unresolved. "
        f"{_look(wait)}Settle: {decide_command(wait.name, choice='Done')} (or Retry, or Abort)",
    )


def _question_asked(state: TaskState, wait: Await, deciders: Deciders) -> _Told:
    until, who = _until(wait), deciders(RequestKind.QUESTION)
    return _Told(
        summary=f"question {wait.name}: answer by {until}",
        message=f"the model asks {who}, until {until}; unanswered, it goes on without an answer. {_look(wait)}"
        f"Answer: {decide_command(wait.name, answer='…')}",
    )


def _paused(state: TaskState, wait: Await, deciders: Deciders) -> _Told:
    go_on = dumps({"spec": {"desired": "Run"}})
    return _Told(
        summary="paused; it goes on when spec.desired is Run",
        message=f"Go on: kubectl patch auratask {state.task} --type=merge -p '{go_on}'",
    )


def _model_retry(state: TaskState, wait: Await, deciders: Deciders) -> _Told:
    trouble = state.trouble
    if trouble is None:
        return _Told(summary=f"the model is asked again at {_until(wait)}", message="")
    what = "tool server error" if trouble.reason == ToolServerError.reason else "model error"
    return _Told(summary=f"{what}, again at {_until(wait)}: {trouble.message}", message=trouble.message)


def _retry_later(state: TaskState, wait: Await, deciders: Deciders) -> _Told:
    tool, until = _call(state, wait).plan.tool, _until(wait)
    return _Told(
        summary=f"{tool} is called again at {until}",
        message=f"{tool} is called again at {until}: until then the call whose answer was lost may still be running",
    )


def _sleeping(state: TaskState, wait: Await, deciders: Deciders) -> _Told:
    until = _until(wait)
    return _Told(summary=f"sleeps until {until}", message=f"timer {wait.name} ends at {until}")


_WORDS: dict[WaitReason, Callable[[TaskState, Await, Deciders], _Told]] = {
    WaitReason.APPROVAL_REQUIRED: _approval_required,
    WaitReason.IN_DOUBT: _in_doubt,
    WaitReason.QUESTION_ASKED: _question_asked,
    WaitReason.PAUSED: _paused,
    WaitReason.MODEL_RETRY: _model_retry,
    WaitReason.RETRY_LATER: _retry_later,
    WaitReason.SLEEPING: _sleeping,
}


def _call(state: TaskState, wait: Await) -> CallState:
    if wait.call is None:
        raise ValueError(f"{wait.id} is about no call")
    return state.call(wait.call)


def _end(wait: Await) -> float:
    if wait.until is None:
        raise ValueError(f"{wait.id} has no end")
    return wait.until


def _until(wait: Await) -> str:
    return to_second_text(_end(wait))


def _look(wait: Await) -> str:
    return f"Look: kubectl get auraapproval {wait.name} -o yaml. "


def decide_command(approval: str, **content: str) -> str:
    """What a person types to decide."""
    patch = {"spec": {"decision": {"approved": True, "reason": "why", **content}}}
    return f"kubectl patch auraapproval {approval} --type=merge -p '{dumps(patch)}'"


def claimed(task: Manifest, now: float) -> StatusFields:
    """The fields that a claim sets: whatever it was parked for, it isn't any more."""
    before = conditions_of(task)
    if not before:
        return {"summary": "claimed"}
    return {"summary": "claimed", "conditions": updated(before, *going_on(before, "Running"), now=now)}


def finished(state: TaskState, entry: Finished, *, task: Manifest) -> StatusFields:
    """The fields of a task that ends by its journal."""
    unresolved = [(effect.tool, effect.call) for effect in state.unresolved]
    return {**journal_facts(state, entry.at), **_ended(entry, unresolved, task)}


def ended(entry: Finished, *, task: Manifest) -> StatusFields:
    """The fields of a task that is ended without being run: what it said last of itself stays."""
    return _ended(entry, [(item["tool"], item["call"]) for item in task["status"].get("unresolved", ())], task)


def _ended(entry: Finished, unresolved: list[tuple[str, int]], task: Manifest) -> StatusFields:
    succeeded = entry.phase is Phase.SUCCEEDED
    names = ", ".join(f"{tool} (call {call})" for tool, call in unresolved)
    warning = f"; UNRESOLVED, may have happened: {names}" if names else ""
    message = (entry.message or "the model gave its final answer") + warning
    before = conditions_of(task)
    return {
        "reason": entry.reason,
        "summary": _cut(("done" if succeeded else f"{entry.reason}: {entry.message}") + warning),
        "conditions": updated(
            before,
            Condition(type="Complete", holds=succeeded, reason=entry.reason, message=message),
            Condition(type="Failed", holds=entry.phase is Phase.FAILED, reason=entry.reason, message=message),
            *going_on(before, "Finished"),
            now=entry.at,
        ),
    }


def _cut(text: str) -> str:
    return text if len(text) <= SUMMARY_LIMIT else text[: SUMMARY_LIMIT - 1] + "…"
