"""An AuraAgent as its controller reads it. Owns reading it, not judging it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aura_operator.store.conditions import conditions_of
from aura_operator.store.resources import AGENTS, Manifest, Ref
from aura_operator.store.task_fields import ConditionFields


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """What an AuraAgent says. `observed` is the generation that its status speaks of."""

    ref: Ref
    uid: str
    generation: int
    deleting: bool
    spec: dict[str, Any]
    observed: int | None
    revision: str
    conditions: tuple[ConditionFields, ...]


def agent_view(manifest: Manifest) -> AgentView:
    metadata, status = manifest["metadata"], manifest.get("status", {})
    return AgentView(
        ref=Ref(resource=AGENTS, namespace=metadata["namespace"], name=metadata["name"]),
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        deleting="deletionTimestamp" in metadata,
        spec=manifest["spec"],
        observed=status.get("observedGeneration"),
        revision=status.get("revision", ""),
        conditions=conditions_of(manifest),
    )
