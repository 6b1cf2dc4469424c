"""What the owner says of its task in status, beside the journal: summary, conditions, progress, unresolved effects.

Owns the sentences; times are absolute, so that a parked task needs no rewrites.
"""

from __future__ import annotations

from typing import Any

from aura_operator.core.commands import Await
from aura_operator.core.entries import Finished, RequestKind
from aura_operator.core.instants import to_second_text, to_text
from aura_operator.core.lifecycle import Phase, WaitKind
from aura_operator.core.state import CallState, Stage, TaskState
from aura_operator.core.text import dumps
from aura_operator.store.resources import Manifest

SUMMARY_LIMIT = 1000


def running(state: TaskState, now: float) -> dict[str, Any]:
    """The fields of a task that is being run. `now` is when its last entry was recorded."""
    return facts(state, now) | {"summary": _running_summary(state)}


def facts(state: TaskState, now: float) -> dict[str, Any]:
    """What follows from the journal alone."""
    usage = state.usage
    return {
        "unresolved": [
            {"call": effect.call, "tool": effect.tool, "since": to_second_text(effect.since)}
            for effect in state.unresolved
        ],
        "progress": {"steps": state.steps, "turns": state.turns, "at": to_text(now)},
        "usage": {
            "requests": usage.requests,
            "inputTokens": usage.input_tokens,
            "outputTokens": usage.output_tokens,
        },
        "recoveries": state.recoveries,
        "steering": {"consumed": state.steering_consumed},
    }


def _running_summary(state: TaskState) -> str:
    calls = [call.plan for call in state.open_calls if call.stage in (Stage.PLANNED, Stage.CLEARED, Stage.STARTED)]
    if not calls:
        return _cut(f"model turn {state.turns + 1}")
    return _cut("; ".join(f"call {plan.call}: {plan.tool}" for plan in calls))


def parked(state: TaskState, waits: list[Await], *, task: Manifest, approvers: str, now: float) -> dict[str, Any]:
    """The fields of a task that parks. `approvers` says in words who may decide."""
    reason, summary, message = _why_parked(state, waits, approvers)
    return facts(state, now) | {
        "summary": _cut(summary),
        "conditions": _conditions(task, now, parked=(True, reason, message)),
    }


def _why_parked(state: TaskState, waits: list[Await], approvers: str) -> tuple[str, str, str]:
    for wait in waits:  # what needs a person comes first
        if wait.kind is not WaitKind.APPROVAL or wait.call is None:
            continue
        call = state.call(wait.call)
        until = to_second_text(wait.until or 0)
        look = f"Look: kubectl get auraapproval {wait.name} -o yaml. "
        if _in_doubt(call):
            since = to_second_text(call.started_at or call.planned_at)
            return (
                "InDoubt",
                f"IN DOUBT {wait.name}: {call.plan.tool} of {since} may have happened; answer by {until}",
                f"{call.plan.tool} was called at {since} and its answer was lost: it may or may not have happened. "
                f"{approvers} can settle it until {until}; unanswered, the task fails and the effect stays unresolved. "
                f"{look}Settle: {decide_command(wait.name, choice='Done')} (or Retry, or Abort)",
            )
        return (
            "ApprovalRequired",
            f"approval {wait.name}: {call.plan.tool}, to {until}",
            f"{call.plan.tool} waits for {approvers} until {until}; unanswered means NOT run. "
            f"{look}Decide: {decide_command(wait.name)} (false denies; the model reads the reason)",
        )
    if any(wait.kind is WaitKind.PAUSE for wait in waits):
        return (
            "Paused",
            "paused; it goes on when spec.desired is Run",
            f"Go on: kubectl patch auratask {state.task} --type=merge -p '{dumps({'spec': {'desired': 'Run'}})}'",
        )
    timer = min(waits, key=lambda wait: wait.until or 0)
    until = to_second_text(timer.until or 0)
    if timer.name.startswith("model-") and state.trouble is not None:
        return "ModelRetry", f"model error, again at {until}: {state.trouble.message}", state.trouble.message
    return "Sleeping", f"sleeps until {until}", f"timer {timer.name} ends at {until}"


def decide_command(approval: str, **content: str) -> str:
    """What a person types to decide."""
    patch = {"spec": {"decision": {"approved": True, "reason": "why", **content}}}
    return f"kubectl patch auraapproval {approval} --type=merge -p '{dumps(patch)}'"


def _in_doubt(call: CallState) -> bool:
    return call.requested is not None and call.requested.kind is RequestKind.IN_DOUBT


def claimed(task: Manifest, now: float) -> dict[str, Any]:
    """The fields that a claim sets: whatever it was parked for, it isn't any more."""
    conditions = task.get("status", {}).get("conditions")
    if not conditions:
        return {"summary": "claimed"}
    return {"summary": "claimed", "conditions": _conditions(task, now, parked=(False, "Running", ""))}


def finished(state: TaskState, entry: Finished, *, task: Manifest) -> dict[str, Any]:
    """The fields of a task that ends by its journal."""
    return facts(state, entry.at) | _ended(entry, [(effect.tool, effect.call) for effect in state.unresolved], task)


def ended(entry: Finished, *, task: Manifest) -> dict[str, Any]:
    """The fields of a task that is ended without being run: what it said last of itself stays."""
    return _ended(entry, [(item["tool"], item["call"]) for item in task["status"].get("unresolved", ())], task)


def _ended(entry: Finished, unresolved: list[tuple[str, int]], task: Manifest) -> dict[str, Any]:
    succeeded = entry.phase is Phase.SUCCEEDED
    names = ", ".join(f"{tool} (call {call})" for tool, call in unresolved)
    warning = f"; UNRESOLVED, may have happened: {names}" if names else ""
    message = (entry.message or "the model gave its final answer") + warning
    return {
        "reason": entry.reason,
        "summary": _cut(("done" if succeeded else f"{entry.reason}: {entry.message}") + warning),
        "conditions": _conditions(
            task,
            entry.at,
            parked=(False, "Finished", ""),
            complete=(succeeded, entry.reason, message),
            failed=(entry.phase is Phase.FAILED, entry.reason, message),
        ),
    }


Condition = tuple[bool, str, str]


def _conditions(
    task: Manifest, now: float, *, parked: Condition, complete: Condition | None = None, failed: Condition | None = None
) -> list[dict[str, Any]]:
    """All conditions; lastTransitionTime moves only where the status does."""
    before = {item["type"]: item for item in task.get("status", {}).get("conditions", ())}
    result = []
    for kind, wanted in (("Complete", complete), ("Failed", failed), ("Parked", parked)):
        if wanted is None:
            if kind in before:
                result.append(before[kind])
            continue
        holds, reason, message = wanted
        status = "True" if holds else "False"
        same = before.get(kind, {}).get("status") == status
        since = before[kind]["lastTransitionTime"] if same else to_second_text(now)
        result.append(
            {"type": kind, "status": status, "reason": reason, "message": message[:4000], "lastTransitionTime": since}
        )
    return result


def _cut(text: str) -> str:
    return text if len(text) <= SUMMARY_LIMIT else text[: SUMMARY_LIMIT - 1] + "…"
