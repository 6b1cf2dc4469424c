"""An AuraTask as the processes read it: a projection of its object, cheap enough for every answer to a write.

Owns reading the whole; its parts are in task_fields.py, the writes in task_writes.py. The full model of the kind, for
users' input, is api/task.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aura_operator.core.absorb import SteeringText
from aura_operator.core.instants import from_text
from aura_operator.core.journal import GENESIS
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.core.ownership import Owner
from aura_operator.store.resources import TASKS, Manifest, Ref, unreadable
from aura_operator.store.task_fields import (
    ConditionFields,
    JournalView,
    LastEnd,
    Wait,
    journal_of,
    last_end_of,
    owner_of,
    waits_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """What an AuraTask says. `journal` is None before the first claim."""

    manifest: Manifest
    ref: Ref
    uid: str
    deleting: bool
    agent: str
    user_input: str
    session: str | None
    requester: str
    desired: Desired
    steering: tuple[SteeringText, ...]
    steering_consumed: int
    priority: int
    active_deadline_seconds: float | None
    ttl_seconds: float | None
    phase: Phase
    summary: str
    conditions: tuple[ConditionFields, ...]
    epoch: int
    run: str
    revision: str
    owner: Owner | None
    journal: JournalView | None
    waiting_for: tuple[Wait, ...]
    fired: tuple[str, ...]
    recoveries: int
    last_end: LastEnd | None
    started_at: float | None
    finished_at: float | None

    @property
    def deadline(self) -> float | None:
        if self.active_deadline_seconds is None or self.started_at is None:
            return None
        return self.started_at + self.active_deadline_seconds

    @property
    def head(self) -> str:
        return self.journal.head if self.journal else GENESIS

    def owned_by(self, owner: Owner) -> bool:
        return self.phase is Phase.RUNNING and self.owner == owner


def task_ref(namespace: str, name: str) -> Ref:
    return Ref(resource=TASKS, namespace=namespace, name=name)


def task_view(manifest: Manifest) -> TaskView:
    """The view of an AuraTask's object, as it comes from the API server (whose schema has checked it).

    Raises UnreadableObjectError for a word that this version doesn't know: a newer one may have written it.
    """
    try:
        return _task_view(manifest)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise unreadable(TASKS, manifest, error) from error


def _task_view(manifest: Manifest) -> TaskView:
    metadata, spec, status = manifest["metadata"], manifest["spec"], manifest.get("status", {})
    return TaskView(
        manifest=manifest,
        ref=task_ref(metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        deleting="deletionTimestamp" in metadata,
        agent=spec["agentRef"]["name"],
        user_input=spec["input"],
        session=spec.get("sessionRef", {}).get("name"),
        requester=spec.get("requester", ""),
        desired=Desired(spec.get("desired", Desired.RUN.value)),
        steering=tuple(SteeringText(text=item["text"], by=item.get("by", "")) for item in spec.get("steering", ())),
        steering_consumed=status.get("steering", {}).get("consumed", 0),
        priority=spec.get("priority", 0),
        active_deadline_seconds=spec.get("activeDeadlineSeconds"),
        ttl_seconds=spec.get("ttlSecondsAfterFinished"),
        phase=Phase(status.get("phase", Phase.PENDING.value)),
        summary=status.get("summary", ""),
        conditions=tuple(status.get("conditions", ())),
        epoch=status.get("epoch", 0),
        run=status.get("run", ""),
        revision=status.get("agentRevision", ""),
        owner=owner_of(status.get("owner")),
        journal=journal_of(status.get("journal")),
        waiting_for=waits_of(status.get("waitingFor", ())),
        fired=tuple(status.get("fired", ())),
        recoveries=status.get("recoveries", 0),
        last_end=last_end_of(status.get("lastEnd")),
        started_at=_instant(status, "startedAt"),
        finished_at=_instant(status, "finishedAt"),
    )


def _instant(fields: Mapping[str, Any], name: str) -> float | None:
    text = fields.get(name)
    return None if text is None else from_text(text)
