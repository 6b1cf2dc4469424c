"""The conditions of all kinds, for all who write one. Owns how a list of them changes; who says what is not here.

`lastTransitionTime` moves only where the status does: whatever alerts on "for 5 minutes" goes by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aura_operator.core.instants import to_second_text
from aura_operator.store.resources import Manifest
from aura_operator.store.task_fields import ConditionFields

MESSAGE_LIMIT = 4000  # the schema allows 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One aspect of an object. `reason` is one CamelCase word, `generation` the metadata.generation it speaks of."""

    type: str
    holds: bool
    reason: str
    message: str = ""
    generation: int | None = None


def conditions_of(manifest: Manifest) -> tuple[ConditionFields, ...]:
    """The conditions that an object has now."""
    return tuple(manifest.get("status", {}).get("conditions", ()))


def updated(before: Sequence[ConditionFields], *wanted: Condition, now: float) -> list[ConditionFields]:
    """All conditions of an object with the wanted ones set; the others stay. Equal to `before` if nothing changes."""
    conditions = {item["type"]: item for item in before}
    for condition in wanted:
        conditions[condition.type] = _fields(condition, conditions.get(condition.type), now)
    return list(conditions.values())


def going_on(before: Sequence[ConditionFields], reason: str, message: str = "") -> list[Condition]:
    """What is wanted of a task that isn't parked (any more): Parked doesn't hold, nor does Paused if it is there."""
    kinds = ["Parked", *(item["type"] for item in before if item["type"] == "Paused")]
    return [Condition(type=kind, holds=False, reason=reason, message=message) for kind in kinds]


def holds(conditions: Sequence[ConditionFields], kind: str) -> bool:
    """Whether a condition of that type is there, and True."""
    return any(item["type"] == kind and item["status"] == "True" for item in conditions)


def _fields(condition: Condition, before: ConditionFields | None, now: float) -> ConditionFields:
    status = "True" if condition.holds else "False"
    unmoved = before is not None and before["status"] == status
    fields: ConditionFields = {
        "type": condition.type,
        "status": status,
        "reason": condition.reason,
        "message": condition.message[:MESSAGE_LIMIT],
        "lastTransitionTime": before["lastTransitionTime"] if before is not None and unmoved else to_second_text(now),
    }
    if condition.generation is not None:
        fields["observedGeneration"] = condition.generation
    return fields
