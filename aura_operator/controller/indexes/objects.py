"""The watched objects as they come in: by events, lists and reads. Owns that all indexes know the same of them.

What is done about an object, and when, is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aura_operator.clock import Clock
from aura_operator.controller.indexes.known import Known
from aura_operator.controller.reconciler import VIEWS, Index
from aura_operator.store.resources import Manifest, Ref, Resource


class Objects:
    """`concerned` is called with what the end of an object concerns, and is to be looked at now."""

    def __init__(
        self, clock: Clock, indexes: Sequence[Index[Any]], *, known: Known, concerned: Callable[[Ref], None]
    ) -> None:
        self._clock = clock
        self._indexes = {kind: [index for index in indexes if index.resource == kind] for kind in VIEWS}
        self._known = known
        self._concerned = concerned

    def heard(self, ref: Ref, manifest: Manifest) -> Any:
        """The view of an object that an event shows."""
        return self._taken_in(ref, manifest, self._known.told(ref, manifest, self._clock.boot()))

    def listed(self, ref: Ref, manifest: Manifest, began: float) -> Any:
        """The view of an object that a list shows which began at `began` (boot clock); None where more is known."""
        if self._known.outdated(ref, manifest, began):
            return None
        return self._taken_in(ref, manifest, self._known.listed(ref, manifest, began))

    def read(self, ref: Ref, manifest: Manifest) -> Any:
        """The view of an object that was read."""
        known = self._known.uid(ref)
        return self._taken_in(ref, manifest, known if known != manifest["metadata"]["uid"] else None)

    def gone(self, ref: Ref, uid: str | None = None) -> bool:
        """An object is gone (`uid` None: whichever was known by its name). False if it wasn't known."""
        uid = uid or self._known.uid(ref)
        if uid is None or not self._known.gone(ref, uid, self._clock.boot()):
            return False
        self._forget(ref, uid)
        return True

    def _taken_in(self, ref: Ref, manifest: Manifest, predecessor: str | None) -> Any:
        if predecessor is not None:
            self._forget(ref, predecessor)
        view = VIEWS[ref.resource](manifest)
        for index in self._indexes[ref.resource]:
            index.seen(view)
        return view

    def _forget(self, ref: Ref, uid: str) -> None:
        for index in self._indexes[ref.resource]:
            for concerned in index.gone(ref, uid):
                self._concerned(concerned)


def ref_of(resource: Resource, manifest: Manifest) -> Ref:
    metadata = manifest["metadata"]
    return Ref(resource=resource, namespace=metadata["namespace"], name=metadata["name"])
