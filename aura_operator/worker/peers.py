"""The live workers with free slots, as their Leases tell. Owns this worker's view of its peers, on its own clock."""

from __future__ import annotations

from aura_operator.core.instants import BootSeconds
from aura_operator.store.leases import lease_view, renew_time
from aura_operator.store.resources import Manifest


class Peers:
    """Leases by name, and when each changed last (boot clock)."""

    def __init__(self) -> None:
        self._leases: dict[str, Manifest] = {}
        self._changed: dict[str, float] = {}

    def seen(self, lease: Manifest, now: BootSeconds) -> None:
        name = lease["metadata"]["name"]
        known = self._leases.get(name)
        if known is None or renew_time(known) != renew_time(lease):
            self._changed[name] = now
        self._leases[name] = lease

    def gone(self, lease: Manifest) -> None:
        self._leases.pop(lease["metadata"]["name"], None)

    def with_free_slots(self, now: BootSeconds) -> set[str]:
        """Workers that can be expected to claim."""
        views = {name: lease_view(lease) for name, lease in self._leases.items()}
        return {
            name
            for name, view in views.items()
            if view.free_slots > 0 and now - self._changed[name] < view.duration_seconds
        }
