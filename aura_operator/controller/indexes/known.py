"""Which objects there are, as far as this controller knows, and whether its events keep up with what lists show.

Owns identities only. A list shows what events should have told: an end that was never told, or a change that still
isn't told some time later, which means that the watch is deaf.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from aura_operator.core.instants import BootSeconds
from aura_operator.store.resources import Manifest, Ref, Resource


@dataclass(slots=True, kw_only=True)
class _Object:
    uid: str
    version: str = ""  # as events told last; empty if they never did
    told: float = 0.0  # when they did, boot clock


ENDED_KEPT = 10_000  # a list that takes longer than so many ends shows some of them again


class Known:
    """Objects by reference. All times: boot clock."""

    def __init__(self) -> None:
        self._objects: dict[Ref, _Object] = {}
        self._untold: dict[Ref, float] = {}  # since when a list shows what no event has told
        self._ended: dict[str, float] = {}  # by uid, when it was found to be gone

    def told(self, ref: Ref, manifest: Manifest, now: BootSeconds) -> str | None:
        """An event shows an object. Returns the uid of another that had its name, and so is gone."""
        predecessor = self._identified(ref, manifest)
        known = self._objects[ref]
        known.version, known.told = manifest["metadata"]["resourceVersion"], now
        self._untold.pop(ref, None)
        return predecessor

    def listed(self, ref: Ref, manifest: Manifest, began: float) -> str | None:
        """A list that began at `began` shows an object. Returns as `told` does."""
        predecessor = self._identified(ref, manifest)
        known = self._objects[ref]
        if known.version == manifest["metadata"]["resourceVersion"]:
            self._untold.pop(ref, None)
        elif known.told < began:  # else the list may be the older one
            self._untold.setdefault(ref, began)
        return predecessor

    def outdated(self, ref: Ref, manifest: Manifest, began: float) -> bool:
        """Whether a list that began at `began` shows less of an object than events have told since: an older version,
        or one that is gone by now."""
        uid, version = manifest["metadata"]["uid"], manifest["metadata"]["resourceVersion"]
        if self._ended.get(uid, -math.inf) >= began:
            return True
        known = self._objects.get(ref)
        return known is not None and known.uid == uid and known.told >= began and known.version != version

    def gone(self, ref: Ref, uid: str, now: BootSeconds) -> bool:
        """An object is gone. False if that isn't the one that is known by its name."""
        self._ended[uid] = now
        if len(self._ended) > ENDED_KEPT:
            del self._ended[next(iter(self._ended))]
        known = self._objects.get(ref)
        if known is None or known.uid != uid:
            return False
        del self._objects[ref]
        self._untold.pop(ref, None)
        return True

    def uid(self, ref: Ref) -> str | None:
        known = self._objects.get(ref)
        return known.uid if known else None

    def missing(self, resource: Resource, listed: Collection[Ref], namespace: str | None) -> Iterator[Ref]:
        """What a whole list of a namespace (None: of all) didn't show: gone, or created since."""
        for ref in self._objects:
            if ref.resource == resource and namespace in (None, ref.namespace) and ref not in listed:
                yield ref

    def untold(self) -> tuple[Ref, float] | None:
        """What the events have failed to tell for longest, and since when."""
        return min(self._untold.items(), key=lambda item: item[1], default=None)

    def _identified(self, ref: Ref, manifest: Manifest) -> str | None:
        uid: str = manifest["metadata"]["uid"]
        known = self._objects.get(ref)
        if known is not None and known.uid == uid:
            return None
        self._objects[ref] = _Object(uid=uid)
        return known.uid if known is not None else None
