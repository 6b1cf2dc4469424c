"""The rules of approvals: when a set of votes is a decision, and whether an approval is the one that was asked for.

Pure; who may vote at all is admission's business, on the API server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from aura_operator.core.entries import Choice, RequestKind, Verdict
from aura_operator.core.instants import to_second_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """How an approval ended. `by`: who voted that way; `choice` of an effect in doubt, `answer` to a question."""

    verdict: Verdict
    reason: str
    by: tuple[str, ...] = ()
    choice: Choice | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """One person's word, as admission filed it."""

    approved: bool
    reason: str = ""
    choice: Choice | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What counts about an approval when its votes are judged. `expires_at` in Unix seconds."""

    kind: RequestKind
    quorum: int
    expires_at: float


def judge(terms: Terms, votes: Mapping[str, Vote], now: float) -> Decision | None:
    """How the approval ends at `now`, or None while it is open.

    A vote that is first seen after the expiry is too late: it has no effect, and the reason names it. One denial ends
    it; otherwise it takes a quorum, and for an effect in doubt one choice by all of them.
    """
    if now >= terms.expires_at:
        return _expired(terms, votes)
    for user, vote in votes.items():
        if not vote.approved:
            return Decision(verdict=Verdict.DENIED, reason=vote.reason, by=(user,), choice=vote.choice)
    if len(votes) < terms.quorum:
        return None
    choices = {vote.choice for vote in votes.values()}
    if terms.kind is RequestKind.IN_DOUBT and (len(choices) != 1 or None in choices):
        return None
    return Decision(
        verdict=Verdict.APPROVED,
        reason="; ".join(vote.reason for vote in votes.values() if vote.reason),
        by=tuple(votes),
        choice=next(iter(choices)),
        answer=_answer(votes),
    )


def _answer(votes: Mapping[str, Vote]) -> str | None:
    """The answers of all who were needed; whose is whose is said where there are several."""
    answers = {user: vote.answer for user, vote in votes.items() if vote.answer is not None}
    if len(answers) <= 1:
        return next(iter(answers.values()), None)
    return "\n".join(f"{user}: {answer}" for user, answer in answers.items())


def _expired(terms: Terms, votes: Mapping[str, Vote]) -> Decision:
    until = to_second_text(terms.expires_at)
    if not votes:
        return Decision(verdict=Verdict.EXPIRED, reason=f"nobody answered by {until}")
    late = ", ".join(f"{user} ({'yes' if vote.approved else 'no'})" for user, vote in votes.items())
    return Decision(
        verdict=Verdict.EXPIRED,
        reason=f"no decision was complete by {until}; votes that were there, or came too late: {late}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an approval was asked for, read from its object."""

    task: str
    run: str
    call: int
    ask: int
    kind: RequestKind
    tool: str
    digest: str
    schema: str


def mismatch(asked: Request, found: Request) -> str | None:
    """Why an approval isn't the one that the journal asked for, or None if it is."""
    for name in (field.name for field in fields(Request)):
        if getattr(asked, name) != getattr(found, name):
            return f"its {name} is {getattr(found, name)!r}, the journal asked for {getattr(asked, name)!r}"
    return None
