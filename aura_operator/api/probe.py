"""What the API server must refuse while the admission policies act: the question that a worker asks when it starts.

Owns the question and the expected answer; asking it is the store's part.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from aura_operator.api.agent import Approvers
from aura_operator.api.approval import ApprovalSpec, AuraApproval, Decision, Request
from aura_operator.api.resource import ObjectMeta
from aura_operator.core.effects import Effect
from aura_operator.core.entries import RequestKind

REFUSAL: Final = "an approval starts undecided"
"""Part of the server's message when the policies act. Any other answer, success above all, means that they don't."""


def forged_approval(namespace: str) -> dict[str, Any]:
    """An AuraApproval to be created with `dryRun=All`: it carries a vote already, which even the operator may not do.

    Nothing is ever stored: with the policies it is refused, without them the dry run ends it.
    """
    approval = AuraApproval(
        metadata=ObjectMeta(name="aura-admission-probe", namespace=namespace),
        spec=ApprovalSpec(
            request=Request(
                task="aura-admission-probe",
                run="probe",
                call=0,
                kind=RequestKind.TOOL_CALL,
                tool="probe",
                effect=Effect.ONCE,
                arguments="{}",
                digest="sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            ),
            approvers=Approvers(),
            requester="nobody",
            expires_at=datetime.fromtimestamp(0, UTC),
            decisions={"nobody": Decision(approved=True)},
        ),
    )
    return approval.to_object()
