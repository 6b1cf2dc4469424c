"""List and watch for as long as the process lives: survives closed streams, 410, 429 and outages.

Yields what is there now and what changes. A relist is compared with what was known, so that no disappearance is lost.
Must not interpret objects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

import structlog

from aura_operator.clock import Clock
from aura_operator.errors import StoreError, WatchExpiredError
from aura_operator.store.commit import Backoff
from aura_operator.store.interface import Selection, Store, WatchEvent, WatchKind
from aura_operator.store.resources import Manifest

log = structlog.get_logger()

SETTLED_SECONDS = 10.0  # a stream that lived this long ended in the ordinary way


class Change(Enum):
    SET = "set"  # is there now, new or different
    GONE = "gone"  # deleted, or left the selection; the object is as it was last seen
    SYNCED = "synced"  # everything that was there at the time of a list has been told; no object


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    change: Change
    object: Manifest = field(default_factory=dict)


async def follow(store: Store, selection: Selection, clock: Clock) -> AsyncIterator[Seen]:
    """Changes of a selection, for ever. Every object is told at least once; the same state may be told twice."""
    known = _Known()
    backoff = Backoff(clock)
    version: str | None = None
    while True:
        trouble: StoreError | None = None
        watching_since = clock.boot()
        try:
            if version is None:
                listed: set[_Key] = set()
                continue_token: str | None = None
                while True:
                    page = await store.list(selection, continue_token=continue_token)
                    for item in page.items:
                        listed.add(_key(item))
                        for seen in known.listed(item):
                            yield seen
                    continue_token = page.continue_token
                    if continue_token is None:
                        break
                version = page.resource_version
                for seen in known.all_but(listed):
                    yield seen
                yield Seen(change=Change.SYNCED)
            watching_since = clock.boot()
            async for event in store.watch(selection, version):
                version = event.object["metadata"]["resourceVersion"]
                for seen in known.happened(event):
                    yield seen
        except WatchExpiredError:
            version = None  # normal after each restart of the API server
        except StoreError as error:
            log.warning("watch interrupted", resource=selection.resource.plural, error=str(error))
            trouble = error
        if clock.boot() - watching_since >= SETTLED_SECONDS:
            backoff.reset()
            if trouble is None:
                continue  # the server closes streams every few minutes: nothing is wrong
        # Back off also after a clean close or a 410 that came at once, or we would spin.
        await backoff.wait(trouble)


_Key = tuple[str, str]


class _Known:
    """What was told, by namespace and name: uid, version, and what is kept of the object to tell its end."""

    def __init__(self) -> None:
        self._objects: dict[_Key, tuple[str, str, Manifest]] = {}

    def listed(self, item: Manifest) -> Iterator[Seen]:
        uid, version, _ = self._objects.get(_key(item), ("", "", {}))
        metadata = item["metadata"]
        if (uid, version) != (metadata["uid"], metadata["resourceVersion"]):
            yield from self._set(item)

    def all_but(self, listed: set[_Key]) -> Iterator[Seen]:
        """Forgets and tells what a list didn't show."""
        for key in [key for key in self._objects if key not in listed]:
            yield Seen(change=Change.GONE, object=self._objects.pop(key)[2])

    def happened(self, event: WatchEvent) -> Iterator[Seen]:
        match event.kind:
            case WatchKind.ADDED | WatchKind.MODIFIED:
                yield from self._set(event.object)
            case WatchKind.DELETED:
                self._objects.pop(_key(event.object), None)
                yield Seen(change=Change.GONE, object=event.object)
            case WatchKind.BOOKMARK:
                pass
            case _:
                assert_never(event.kind)

    def _set(self, item: Manifest) -> Iterator[Seen]:
        key, metadata = _key(item), item["metadata"]
        uid, _, trace = self._objects.get(key, ("", "", {}))
        if uid and uid != metadata["uid"]:
            # Before its namesake: those who go by names must not take the new one for gone.
            yield Seen(change=Change.GONE, object=trace)
        self._objects[key] = (metadata["uid"], metadata["resourceVersion"], _trace_of(item))
        yield Seen(change=Change.SET, object=item)


def _key(item: Manifest) -> _Key:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _trace_of(item: Manifest) -> Manifest:
    """What is kept of an object to tell its end: its metadata's identity, not its content."""
    metadata = item["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
    return {"apiVersion": item.get("apiVersion"), "kind": item.get("kind"), "metadata": kept}
