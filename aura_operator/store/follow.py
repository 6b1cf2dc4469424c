"""List and watch for as long as the process lives: survives closed streams, 410, 429 and outages.

Yields what is there now and what changes; a relist is diffed against what was known, so that no disappearance is lost.
Must not interpret objects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum

import structlog

from aura_operator.errors import StoreError, WatchExpiredError
from aura_operator.store.client import Selection, Store, WatchKind
from aura_operator.store.clock import Clock
from aura_operator.store.commit import Backoff
from aura_operator.store.resources import Manifest

log = structlog.get_logger()


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
    known: dict[str, tuple[str, Manifest]] = {}
    backoff = Backoff(clock)
    version: str | None = None
    while True:
        try:
            if version is None:
                listed: set[str] = set()
                more: str | None = None
                while True:
                    page = await store.list(selection, more=more)
                    for item in page.items:
                        metadata = item["metadata"]
                        listed.add(metadata["uid"])
                        if known.get(metadata["uid"], ("",))[0] != metadata["resourceVersion"]:
                            known[metadata["uid"]] = (metadata["resourceVersion"], _trace_of(item))
                            yield Seen(change=Change.SET, object=item)
                    more = page.more
                    if more is None:
                        break
                version = page.resource_version
                for uid in [uid for uid in known if uid not in listed]:
                    yield Seen(change=Change.GONE, object=known.pop(uid)[1])
                yield Seen(change=Change.SYNCED)
            async for event in store.watch(selection, version):
                backoff.reset()
                metadata = event.object["metadata"]
                version = str(metadata["resourceVersion"])
                if event.kind is WatchKind.BOOKMARK:
                    continue
                if event.kind is WatchKind.DELETED:
                    known.pop(metadata["uid"], None)
                    yield Seen(change=Change.GONE, object=event.object)
                    continue
                known[metadata["uid"]] = (version, _trace_of(event.object))
                yield Seen(change=Change.SET, object=event.object)
        except WatchExpiredError:
            version = None  # normal after each restart of the API server
        except StoreError as error:
            log.warning("watch interrupted", resource=selection.resource.plural, error=str(error))
            await backoff.wait(error)


def _trace_of(item: Manifest) -> Manifest:
    """What is kept of an object to tell its end: its metadata's identity, not its content."""
    metadata = item["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
    return {"apiVersion": item.get("apiVersion"), "kind": item.get("kind"), "metadata": kept}
