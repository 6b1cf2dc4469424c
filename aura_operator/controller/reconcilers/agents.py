"""Says of an AuraAgent whether tasks can run with it, as far as its spec tells. Owns `status` of agents.

Connects to nothing: what a server offers is found when a task runs.
"""

from __future__ import annotations

from typing import Any

import structlog
from pydantic import ValidationError

from aura_operator.api.agent import AgentSpec
from aura_operator.clock import Clock
from aura_operator.core.effects import policy_for
from aura_operator.core.instants import UnixSeconds
from aura_operator.store.agents import AgentView
from aura_operator.store.commit import try_commit
from aura_operator.store.conditions import Condition, updated
from aura_operator.store.interface import Store, add, expect
from aura_operator.store.resources import AGENTS, Manifest
from aura_operator.store.revisions import revision_name
from aura_operator.store.writes import Write

log = structlog.get_logger()


def readiness(spec: dict[str, Any]) -> tuple[bool, str, str]:
    """Whether tasks can run with a spec, the reason as one word, and a sentence with the remedy. Pure."""
    try:
        agent = AgentSpec.model_validate(spec)
    except ValidationError as error:  # the API server has let it pass: its schema is another version's
        where = ", ".join(sorted({"spec." + ".".join(map(str, fault["loc"])) for fault in error.errors()}))
        return False, "Unsupported", f"this version doesn't know what {where} says; upgrade the operator, or change it"
    unsupported = agent.unsupported()
    if unsupported is not None:
        return False, "Unsupported", unsupported
    rules = agent.core_rules()
    someone = agent.approvals.approvers.users or agent.approvals.approvers.groups
    asking = [rule.match for rule in rules if rule.approval_required]
    # A tool that no rule names is Once, and so needs approval.
    undeclared = [
        server.name for server in agent.mcp_servers if policy_for(f"{server.name}__anything", rules).approval_required
    ]
    if not someone and (asking or undeclared):
        what = f"tools {', '.join(asking)}" if asking else f"undeclared tools of {', '.join(undeclared)}"
        return False, "NoApprovers", f"{what} need a person's approval; name somebody in spec.approvals.approvers"
    return True, "Accepted", "tasks can run with it"


def status_for(agent: AgentView, now: UnixSeconds) -> dict[str, Any] | None:
    """The status that the spec calls for, by the rules of this version; None if it is there already."""
    ready, reason, message = readiness(agent.spec)
    condition = Condition(type="Ready", holds=ready, reason=reason, message=message, generation=agent.generation)
    conditions = updated(agent.conditions, condition, now=now)
    revision = revision_name(agent.ref.name, agent.spec)
    if (agent.observed, agent.revision, list(agent.conditions)) == (agent.generation, revision, conditions):
        return None
    return {"observedGeneration": agent.generation, "revision": revision, "conditions": conditions}


class AgentReadiness:
    """Brings an agent's status up to its spec, and to what this version makes of it."""

    resource = AGENTS

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def reconcile(self, seen: AgentView) -> float | None:
        status = None if seen.deleting else status_for(seen, self._clock.now())
        if status is None:
            return None
        if await try_commit(self._store, _write(seen, status), self._clock) is not None:
            ready = status["conditions"][-1]
            log.info("agent", agent=str(seen.ref), ready=ready["status"], reason=ready["reason"])
        return None


def _write(agent: AgentView, status: dict[str, Any]) -> Write:
    ops = (
        expect("/metadata/uid", agent.uid),
        expect("/metadata/generation", agent.generation),
        add("/status", status),
    )

    def landed(found: Manifest) -> bool:
        return all(found.get("status", {}).get(name) == value for name, value in status.items())

    return Write(name="agent status", ref=agent.ref, ops=ops, landed=landed)
