"""Whether a controller can do its part, and whether only a restart would help. Owns the reasons, in words.

A list shows whether the events keep up: kopf tells of objects only, so a quiet watch and a dead one look the same.
"""

from __future__ import annotations

from aura_operator.clock import Clock
from aura_operator.controller.contact import Contact
from aura_operator.controller.events import Watch
from aura_operator.controller.indexes.known import Known
from aura_operator.controller.resync import Resync

NO_ANSWER_SECONDS = 30.0
LATE_SECONDS = 60.0  # an event that comes later than this, after a list has shown the change, is lost
DEAF_SECONDS = 300.0
STUCK_SECONDS = 600.0  # three times what lies between two resyncs


class Health:
    """All times: boot clock."""

    def __init__(self, clock: Clock, watch: Watch, contact: Contact, resync: Resync, known: Known) -> None:
        self._clock = clock
        self._watch = watch
        self._contact = contact
        self._resync = resync
        self._known = known

    def not_ready(self) -> str | None:
        silent = self._clock.boot() - self._contact.answered_at
        if silent > NO_ANSWER_SECONDS:
            return f"the API server hasn't answered for {silent:.0f} s"
        return self._watch.trouble or self._deaf(LATE_SECONDS)

    def unhealthy(self) -> str | None:
        now = self._clock.boot()
        for loop, at in (("contact with Leases", self._contact.looked_at), ("resyncs", self._resync.turned_at)):
            if now - at > STUCK_SECONDS:
                return f"the loop of {loop} hasn't turned for {now - at:.0f} s"
        return self._deaf(DEAF_SECONDS)

    def _deaf(self, seconds: float) -> str | None:
        untold = self._known.untold()
        if untold is None:
            return None
        ref, since = untold
        silent = self._clock.boot() - since
        if silent <= seconds:
            return None
        return f"the watch is deaf: a list showed a change of {ref} {silent:.0f} s ago, and no event has told it"
