"""What the model reads where no tool answered: one sentence each, facts only.

Owns the wording; a change here changes what models are told of old journals too, so meanings stay.
"""

from __future__ import annotations

from typing import assert_never

from aura_operator.core.entries import Choice, Decided, Verdict
from aura_operator.core.instants import to_second_text


def not_made(decided: Decided, tool: str) -> str:
    """A call that a person (or silence) stopped before it started."""
    match decided.verdict:
        case Verdict.DENIED:
            return f"{tool} was not called. Denied by {', '.join(decided.by)}: {decided.reason}"
        case Verdict.EXPIRED:
            return f"{tool} was not called: {decided.reason}"
        case Verdict.WITHDRAWN:
            return f"{tool} was not called: the request for approval was withdrawn ({decided.reason})"
        case Verdict.STALE:
            return f"{tool} was not called: it changed each time its approval came back ({decided.reason})"
        case Verdict.APPROVED:
            raise ValueError("an approved call is made")


def replied(decided: Decided) -> tuple[str, bool]:
    """What the model reads after its question to a person, and whether that is an error."""
    by = ", ".join(decided.by)
    match decided.verdict:
        case Verdict.APPROVED:
            return f"{by} answered: {decided.answer or ''}", False
        case Verdict.DENIED:
            return f"{by} did not answer: {decided.reason}", True
        case Verdict.EXPIRED | Verdict.WITHDRAWN | Verdict.STALE:
            return f"the question was not answered: {decided.reason}", True
    assert_never(decided.verdict)


def settled_done(decided: Decided, tool: str) -> str:
    reason = f": {decided.reason}" if decided.reason else ""
    return f"{tool} was interrupted and its answer was lost; {', '.join(decided.by)} found that it did happen{reason}"


def may_have_happened(tool: str, since: float) -> str:
    return (
        f"{tool} was called at {to_second_text(since)} and its answer was lost: it may or may not have happened. "
        f"It will not be called again by itself; look before you act."
    )


def slept(seconds: float, interrupted: bool) -> str:
    return f"slept {seconds:g} s" if not interrupted else "woken before the time was over: there is a message for you"


def aborted(decided: Decided, tool: str, call: int) -> tuple[str, str]:
    """Reason and message of a task that ends over an effect in doubt."""
    if decided.verdict is Verdict.EXPIRED:
        return "InDoubtUnanswered", f"call {call} ({tool}) may or may not have happened; {decided.reason}"
    choice = decided.choice.value if decided.choice else Choice.ABORT.value
    who = ", ".join(decided.by) or "nobody"
    return "InDoubtAborted", f"call {call} ({tool}) may or may not have happened; {choice} by {who}: {decided.reason}"
