"""What has happened in a MemoryStore, in order, and its watches. Owns versions, bookmarks, 410 and closed streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aura_operator.errors import WatchExpiredError
from aura_operator.store.interface import Selection, WatchEvent, WatchKind
from aura_operator.store.resources import Manifest, Resource
from aura_operator.testing.memory_patch import copied
from aura_operator.testing.memory_select import matches


@dataclass(frozen=True, slots=True, kw_only=True)
class _Happening:
    """A change of one object, or a bookmark (no resource)."""

    version: int
    resource: Resource | None
    old: Manifest | None
    new: Manifest | None


class History:
    """All changes of one store."""

    def __init__(self) -> None:
        self._happenings: list[_Happening] = []
        self._version = 1
        self._oldest = 0
        self._cuts = 0
        self._bells: set[asyncio.Event] = set()

    @property
    def version(self) -> str:
        return str(self._version)

    def happened(self, resource: Resource, old: Manifest | None, new: Manifest | None) -> str:
        """Notes a change; returns the object's new version."""
        self._version += 1
        version = str(self._version)
        last = None
        if new is not None:
            last = copied(new)
            last["metadata"]["resourceVersion"] = version
        self._happenings.append(_Happening(version=self._version, resource=resource, old=copied(old), new=last))
        self._ring()
        return version

    def bookmark(self) -> None:
        self._happenings.append(_Happening(version=self._version, resource=None, old=None, new=None))
        self._ring()

    def compact(self) -> None:
        self._oldest = self._version

    def cut(self) -> None:
        self._cuts += 1
        self._ring()

    async def events(self, selection: Selection, resource_version: str) -> AsyncIterator[WatchEvent]:
        """What happens to a selection after a version, until `cut`."""
        since = int(resource_version)
        if since < self._oldest:
            raise WatchExpiredError(f"watching {selection.resource.plural}: too old resource version: {since} (410)")
        cuts = self._cuts
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            # A bookmark stands at the version of what went before it, so the start is found by position.
            position = next(
                (index for index, seen in enumerate(self._happenings) if seen.version > since), len(self._happenings)
            )
            while self._cuts == cuts:
                bell.clear()
                while position < len(self._happenings) and self._cuts == cuts:
                    event = _event(selection, self._happenings[position])
                    position += 1
                    if event is not None:
                        yield event
                if self._cuts == cuts:
                    await bell.wait()
        finally:
            self._bells.discard(bell)

    def _ring(self) -> None:
        for bell in self._bells:
            bell.set()


def _event(selection: Selection, seen: _Happening) -> WatchEvent | None:
    if seen.resource is None:
        resource = selection.resource
        bookmark = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"resourceVersion": str(seen.version)},
        }
        return WatchEvent(kind=WatchKind.BOOKMARK, object=bookmark)
    if seen.resource != selection.resource:
        return None
    was = seen.old is not None and matches(selection, seen.old)
    new = seen.new if seen.new is not None and matches(selection, seen.new) else None
    if new is not None:
        return WatchEvent(kind=WatchKind.MODIFIED if was else WatchKind.ADDED, object=copied(new))
    if not was:
        return None
    # The object as it was before, at the version at which it went: that is what the server sends.
    gone: Manifest = copied(seen.old or {})
    gone["metadata"]["resourceVersion"] = str(seen.version)
    return WatchEvent(kind=WatchKind.DELETED, object=gone)
