"""AuraApproval: one request to people, its terms, their votes and what came of it.

Owns the shape and the rules that hold whoever writes; who may vote is admission's part (the chart's policies).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from aura_operator.api.agent import Approvers
from aura_operator.api.resource import (
    KEEP_EMPTY_DEFAULT,
    Column,
    Count,
    Definition,
    Digest,
    Model,
    Name,
    Resource,
    Timestamp,
    ToolName,
    Uid,
    User,
    rules,
    unchanged,
)
from aura_operator.core.effects import Effect
from aura_operator.core.entries import Choice, RequestKind


class ArgumentsRef(Model):
    """Where arguments are that are too large or too sensitive to stand here."""

    name: Name
    """Name of the object."""
    kind: Literal["Secret", "AuraCheckpoint"]
    """Its kind."""


class Request(Model):
    """What is asked. Never changes."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "self.kind == 'Question' ? has(self.question) : "
                "(has(self.tool) && has(self.effect) && has(self.digest))",
                "a Question has a question; ToolCall and InDoubt have tool, effect and digest",
            ),
            (
                "self.kind == 'Question' || [has(self.arguments), has(self.argumentsRef)].exists_one(x, x)",
                "ToolCall and InDoubt have either arguments or argumentsRef",
            ),
        )
    )

    task: Name
    """The AuraTask that asks."""
    run: Uid
    """Its `status.run`."""
    call: Count
    """Number of the call in the task."""
    ask: Count = 0
    """How often this call was asked about before."""
    kind: RequestKind
    """ToolCall: may it be made? InDoubt: did it happen? Question: the model asks a person."""
    tool: ToolName | None = None
    """The tool."""
    effect: Effect | None = None
    """What a call does to the world."""
    arguments: Annotated[str, Field(max_length=131072)] | None = None
    """The arguments as JSON text, to the byte as the tool gets them."""
    arguments_ref: ArgumentsRef | None = None
    """Where the arguments are if they don't stand here."""
    digest: Digest | None = None
    """Hash of the arguments text. What runs must have the same."""
    tool_schema_digest: Digest | None = None
    """Hash of the tool's schema at the time of asking."""
    agent_revision: Name | None = None
    """The agent's revision at the time of asking."""
    not_before: Timestamp | None = None
    """InDoubt: until then the call may still be on its way, and nothing is done about it."""
    question: Annotated[str, Field(min_length=1, max_length=16384)] | None = None
    """Question: what the model wants to know. InDoubt: what is in doubt."""


class Decision(Model):
    """One person's vote."""

    approved: bool
    """Yes or no. One no ends it."""
    reason: Annotated[str, Field(max_length=2048)] | None = None
    """Why. A denial's reason is shown to the model word for word."""
    choice: Choice | None = None
    """InDoubt only: Done (it happened), Retry (make it again) or Abort."""
    answer: Annotated[str, Field(max_length=16384)] | None = None
    """Question only: the answer."""


class ApprovalSpec(Model):
    """The terms, which never change, and the votes, which can only be added."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                unchanged("request", "approvers", "quorum", "requester", "expiresAt", optional=("involved",)),
                "the terms of an approval never change",
            ),
            (
                "oldSelf.decisions.all(u, u in self.decisions && self.decisions[u] == oldSelf.decisions[u])",
                "a decision is final",
            ),
            # Two who decide at once: the server takes one after the other, and the second finds it decided.
            (
                "self.decisions.size() == oldSelf.decisions.size() || "
                "(self.decisions.size() <= self.quorum && oldSelf.decisions.all(u, oldSelf.decisions[u].approved))",
                "this has been decided already: a quorum or a denial is in spec.decisions",
            ),
            (
                "self.request.kind == 'InDoubt' || self.decisions.all(u, !has(self.decisions[u].choice))",
                "a choice is made only where a call is in doubt (request.kind InDoubt)",
            ),
            (
                "self.request.kind != 'InDoubt' || self.decisions.all(u, self.decisions[u].approved ? "
                "has(self.decisions[u].choice) : "
                "(!has(self.decisions[u].choice) || self.decisions[u].choice == 'Abort'))",
                "a call in doubt is settled by approved: true and a choice of Done, Retry or Abort; a denial is Abort",
            ),
            (
                "self.request.kind != 'InDoubt' || self.decisions.all(u, !self.decisions[u].approved || "
                "self.decisions.all(v, !self.decisions[v].approved || !has(self.decisions[u].choice) || "
                "!has(self.decisions[v].choice) || self.decisions[u].choice == self.decisions[v].choice))",
                "all who decide about a call in doubt must make the same choice; deny if you disagree",
            ),
            (
                "self.request.kind == 'Question' ? "
                "self.decisions.all(u, !self.decisions[u].approved || has(self.decisions[u].answer)) : "
                "self.decisions.all(u, !has(self.decisions[u].answer))",
                "a question is answered with approved: true and an answer; nothing else takes an answer",
            ),
        )
    )

    request: Request
    """What is asked."""
    approvers: Approvers
    """Who may decide."""
    quorum: Annotated[int, Field(ge=1, le=16)] = 1
    """How many have to approve."""
    requester: User
    """Who asked for the task."""
    involved: Annotated[tuple[User, ...], Field(max_length=64)] = ()
    """Who may not decide, because they asked for the task or steered it (four eyes). Empty: no such rule."""
    expires_at: Timestamp
    """Unanswered until then means: not done."""
    decision: Decision | None = None
    """Write your vote here: admission files it in `decisions` under your name."""
    decisions: Annotated[dict[str, Decision], Field(max_length=16, json_schema_extra=KEEP_EMPTY_DEFAULT)] = Field(
        default={}
    )
    """The votes by user name."""


class ApprovalStatus(Model):
    """What came of it. Written by the operator only."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                f"oldSelf.phase == 'Pending' || ({unchanged('phase', optional=('choice', 'decidedAt'))})",
                "a settled approval stays settled",
            )
        )
    )

    phase: Literal["Pending", "Approved", "Denied", "Expired", "Withdrawn"] = "Pending"
    """Pending, Approved, Denied, Expired (nobody answered in time) or Withdrawn (the task no longer asks)."""
    # Room for the reasons of a full quorum, 16 times 2048 characters.
    reason: Annotated[str, Field(max_length=40960)] | None = None
    """Why, in words."""
    votes: Annotated[str, Field(max_length=32)] | None = None
    """Approving votes of those needed, e.g. `1/2`."""
    decided_at: Timestamp | None = None
    """When it was settled."""
    choice: Choice | None = None
    """InDoubt: what was decided."""


class AuraApproval(Resource):
    """A request to people: may this call be made, did that call happen, or a question. Decide by patching
    spec.decision, e.g. `{"spec":{"decision":{"approved":true,"reason":"ok"}}}`."""

    # Not even the operator can approve by itself, or choose what nobody chose. (While an object is created, its status
    # is away: the server drops it and defaults it when it is read.)
    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.status) || self.status.phase != 'Approved' || "
                "(self.spec.decisions.size() >= self.spec.quorum && "
                "self.spec.decisions.all(u, self.spec.decisions[u].approved))",
                "Approved needs a full quorum and no denial",
            ),
            (
                "!has(self.status) || self.status.phase != 'Approved' || !has(self.status.choice) || "
                "self.spec.decisions.all(u, "
                "self.spec.decisions[u].?choice.orValue('') == self.status.choice)",
                "the choice is that of those who decided",
            ),
        )
    )

    definition: ClassVar[Definition] = Definition(
        plural="auraapprovals",
        short_name="aa",
        columns=(
            Column(name="Task", path=".spec.request.task"),
            Column(name="Kind", path=".spec.request.kind"),
            Column(name="Tool", path=".spec.request.tool"),
            Column(name="Effect", path=".spec.request.effect"),
            Column(name="Votes", path=".status.votes"),
            Column(name="Expires", path=".spec.expiresAt"),
            Column(name="Requester", path=".spec.requester"),
            Column(name="Phase", path=".status.phase", wide_only=True),
            Column(name="Age", path=".metadata.creationTimestamp", type="date", wide_only=True),
        ),
        selectable=(".status.phase", ".spec.request.task"),
        # <task>-<call>-r<ask> with a task's 180 characters
        name_max_length=253,
    )

    kind: Literal["AuraApproval"] = "AuraApproval"
    spec: ApprovalSpec
    """The terms and the votes."""
    status: ApprovalStatus = ApprovalStatus()
    """What came of it."""
