"""The writes on an approval's status: how many have voted, and how it ended. Conditional, as in task_writes.py."""

from __future__ import annotations

from aura_operator.core.approvals import Decision
from aura_operator.core.instants import to_second_text
from aura_operator.store.approvals import PENDING, ApprovalStatusFields
from aura_operator.store.interface import add, expect
from aura_operator.store.resources import Manifest, Ref
from aura_operator.store.writes import Write, puts, same


def settle_approval(
    ref: Ref, uid: str, decision: Decision, *, votes: str, now: float, judged: Manifest | None = None
) -> Write:
    """Records how an approval ended; it stays so.

    `judged` is the object whose votes led to the decision: a vote that has come since stops the write, or the status
    would deny it and the owner, who judges the votes again, could come to another end.
    """
    settled: ApprovalStatusFields = {
        "phase": decision.verdict.value,
        "reason": decision.reason,
        "votes": votes,
        "decidedAt": to_second_text(now),
    }
    if decision.choice is not None:
        settled["choice"] = decision.choice.value
    # Not the votes themselves: a server compares texts as they are escaped, so words with < or & would never be equal.
    unchanged = () if judged is None else (expect("/metadata/generation", judged["metadata"]["generation"]),)
    ops = (*same(uid), expect("/status/phase", PENDING), *unchanged, *puts(settled))
    return Write(
        name="settle", ref=ref, ops=ops, landed=lambda manifest: manifest["status"]["phase"] == decision.verdict.value
    )


def count_votes(ref: Ref, uid: str, votes: str) -> Write:
    """Shows how many have voted while an approval is open."""
    ops = (*same(uid), expect("/status/phase", PENDING), add("/status/votes", votes))

    def landed(manifest: Manifest) -> bool:
        return bool(manifest["status"].get("votes") == votes)

    return Write(name="count", ref=ref, ops=ops, landed=landed)
