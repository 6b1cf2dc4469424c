"""Kubernetes Events about tasks: short facts for `kubectl describe`. Losing one loses nothing.

Owns the form of events.k8s.io/v1; must never carry arguments, results or prompts.
"""

from __future__ import annotations

import uuid
from enum import Enum

import structlog

from aura_operator.clock import Clock
from aura_operator.core.instants import to_micro_text
from aura_operator.errors import StoreError
from aura_operator.store.interface import Store
from aura_operator.store.resources import EVENTS, Manifest, new

log = structlog.get_logger()

MAX_NOTE = 1024  # bound of events.k8s.io/v1


class EventType(Enum):
    NORMAL = "Normal"
    WARNING = "Warning"


class EventRecorder:
    """Writes Events in the name of one component instance."""

    def __init__(self, store: Store, clock: Clock, *, component: str, instance: str) -> None:
        self._store = store
        self._clock = clock
        self._component = f"aura.mezmo.com/{component}"
        self._instance = instance

    async def record(
        self, about: Manifest, reason: str, note: str, *, event_type: EventType = EventType.NORMAL
    ) -> None:
        """Writes one Event about an object; a failure is logged and otherwise without consequence."""
        metadata = about["metadata"]
        event = new(EVENTS, metadata["namespace"], f"{metadata['name'][:200]}.{uuid.uuid4().hex[:16]}")
        event |= {
            "eventTime": to_micro_text(self._clock.now()),
            "reportingController": self._component,
            "reportingInstance": self._instance[:128],
            "action": reason,
            "reason": reason,
            "type": event_type.value,
            "note": note.encode()[:MAX_NOTE].decode(errors="ignore"),
            "regarding": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        }
        try:
            await self._store.create(EVENTS, event)
        except StoreError as error:
            regarding = f"{about['kind']} {metadata['namespace']}/{metadata['name']}"
            log.warning("event not recorded", reason=reason, regarding=regarding, error=str(error))
