"""Reconciles one AuraAgent: says whether tasks can run with it, as far as its spec tells. Owns `status` of agents.

Connects to nothing: what a server offers is found when a task runs.
"""

from __future__ import annotations

from typing import Any

import structlog

from aura_operator.clock import Clock
from aura_operator.core.effects import Effect, ToolRule, policy_for
from aura_operator.core.instants import to_second_text
from aura_operator.errors import ConflictError, NotFoundError
from aura_operator.store.commit import commit
from aura_operator.store.interface import Store, add, expect
from aura_operator.store.resources import AGENTS, Manifest, Ref
from aura_operator.store.revisions import revision_name
from aura_operator.store.task_writes import Write

log = structlog.get_logger()


def readiness(spec: dict[str, Any]) -> tuple[bool, str, str]:
    """Whether tasks can run with a spec, the reason as one word, and a sentence with the remedy. Pure."""
    if spec.get("subAgents"):
        return False, "Unsupported", "this version runs no sub-agents; remove spec.subAgents"
    if any("lookup" in item for item in spec.get("tools", ())):
        return False, "Unsupported", "this version follows no lookup tools; remove lookup from spec.tools"
    servers = [server["name"] for server in spec.get("mcpServers", ())]
    approvals = spec.get("approvals", {})
    approvers = approvals.get("approvers", {})
    someone = approvers.get("users") or approvers.get("groups")
    rules = tuple(_rule(item) for item in spec.get("tools", ()))
    asking = [rule.match for rule in rules if rule.approval_required]
    # A tool that no rule names is Once, and so needs approval.
    undeclared = [name for name in servers if policy_for(f"{name}__anything", rules).approval_required]
    if not someone and (asking or undeclared):
        what = f"tools {', '.join(asking)}" if asking else f"undeclared tools of {', '.join(undeclared)}"
        return False, "NoApprovers", f"{what} need a person's approval; name somebody in spec.approvals.approvers"
    return True, "Accepted", "tasks can run with it"


def _rule(item: dict[str, Any]) -> ToolRule:
    approval = item.get("approval")
    return ToolRule(
        match=item["match"],
        effect=Effect(item["effect"]) if "effect" in item else None,
        approval_required=None if approval is None else approval == "Required",
    )


class AgentReconciler:
    """Handles agents one at a time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def reconcile(self, manifest: Manifest) -> None:
        """Brings the status up to the spec's generation."""
        metadata, spec = manifest["metadata"], manifest["spec"]
        generation = metadata.get("generation", 1)
        if manifest.get("status", {}).get("observedGeneration") == generation or "deletionTimestamp" in metadata:
            return
        ready, reason, message = readiness(spec)
        status = {
            "observedGeneration": generation,
            "revision": revision_name(metadata["name"], spec),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": to_second_text(self._clock.now()),
                    "observedGeneration": generation,
                }
            ],
        }
        ref = Ref(resource=AGENTS, namespace=metadata["namespace"], name=metadata["name"])
        ops = (
            expect("/metadata/uid", metadata["uid"]),
            expect("/metadata/generation", generation),
            add("/status", status),
        )

        def landed(found: Manifest) -> bool:
            return bool(found.get("status", {}).get("observedGeneration", 0) >= generation)

        try:
            await commit(self._store, Write(name="agent status", ref=ref, ops=ops, landed=landed), self._clock)
        except (ConflictError, NotFoundError) as error:
            log.info("agent status not written", agent=str(ref), error=str(error))
            return
        log.info("agent", agent=str(ref), ready=ready, reason=reason)
