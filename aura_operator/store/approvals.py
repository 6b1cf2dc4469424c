"""An AuraApproval as the processes read it, and the fields that they write. The writes are in approval_writes.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NotRequired, TypedDict

from aura_operator.core.approvals import Request, Terms, Vote
from aura_operator.core.entries import Choice, RequestKind
from aura_operator.core.instants import from_text
from aura_operator.store.resources import APPROVALS, Manifest, Ref, unreadable

PENDING = "Pending"


class ArgumentsRefFields(TypedDict):
    kind: str
    name: str


class RequestFields(TypedDict):
    task: str
    run: str
    call: int
    ask: int
    kind: str
    tool: str
    effect: str
    digest: str
    agentRevision: str
    arguments: NotRequired[str]
    argumentsRef: NotRequired[ArgumentsRefFields]
    question: NotRequired[str]
    toolSchemaDigest: NotRequired[str]
    notBefore: NotRequired[str]


class ApproversFields(TypedDict):
    users: list[str]
    groups: list[str]


class ApprovalSpecFields(TypedDict):
    """What the operator writes at creation; the votes are people's."""

    request: RequestFields
    approvers: ApproversFields
    quorum: int
    requester: str
    involved: list[str]
    expiresAt: str


class ApprovalStatusFields(TypedDict, total=False):
    phase: str
    reason: str
    votes: str
    decidedAt: str
    choice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalView:
    """What an AuraApproval says. `phase` is Pending or the text of a Verdict; `decided_at` in Unix seconds;
    `votes_shown` is the count that the status shows."""

    manifest: Manifest
    ref: Ref
    uid: str
    request: Request
    terms: Terms
    votes: Mapping[str, Vote]
    phase: str
    reason: str
    choice: Choice | None
    decided_at: float | None
    votes_shown: str | None

    @property
    def count(self) -> str:
        """Approving votes of those needed, e.g. 1/2."""
        return f"{sum(1 for vote in self.votes.values() if vote.approved)}/{self.terms.quorum}"


def approval_ref(namespace: str, name: str) -> Ref:
    return Ref(resource=APPROVALS, namespace=namespace, name=name)


def approval_view(manifest: Manifest) -> ApprovalView:
    """The view of an AuraApproval's object, as it comes from the API server (whose schema has checked it).

    Raises UnreadableObjectError for a word that this version doesn't know: a newer one may have written it.
    """
    try:
        return _approval_view(manifest)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise unreadable(APPROVALS, manifest, error) from error


def _approval_view(manifest: Manifest) -> ApprovalView:
    metadata, spec, status = manifest["metadata"], manifest["spec"], manifest.get("status", {})
    asked = spec["request"]
    kind = RequestKind(asked["kind"])
    return ApprovalView(
        manifest=manifest,
        ref=approval_ref(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        request=Request(
            task=asked["task"],
            run=asked["run"],
            call=asked["call"],
            ask=asked.get("ask", 0),
            kind=kind,
            tool=asked.get("tool", ""),
            digest=asked.get("digest", ""),
            schema=asked.get("toolSchemaDigest", ""),
        ),
        terms=Terms(kind=kind, quorum=spec.get("quorum", 1), expires_at=from_text(spec["expiresAt"])),
        votes={
            user: Vote(
                approved=vote["approved"],
                reason=vote.get("reason", ""),
                choice=Choice(vote["choice"]) if "choice" in vote else None,
                answer=vote.get("answer"),
            )
            for user, vote in spec.get("decisions", {}).items()
        },
        phase=status.get("phase", PENDING),
        reason=status.get("reason", ""),
        choice=Choice(status["choice"]) if "choice" in status else None,
        decided_at=from_text(status["decidedAt"]) if "decidedAt" in status else None,
        votes_shown=status.get("votes"),
    )
