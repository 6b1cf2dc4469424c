"""The small interface through which everything reaches the API server; kube.py, testing's MemoryStore and FaultyStore
implement it. Errors are those of errors.py, whatever the implementation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from aura_operator.store.resources import Manifest, Ref, Resource


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a JSON Patch (RFC 6902)."""

    op: str
    path: str
    value: Any = None

    def to_json(self) -> dict[str, Any]:
        if self.op == "remove":
            return {"op": self.op, "path": self.path}
        return {"op": self.op, "path": self.path, "value": self.value}


def expect(path: str, value: Any) -> Op:
    """Holds if the value is there; null holds for a path that is missing."""
    return Op("test", path, value)


def add(path: str, value: Any) -> Op:
    """Sets a member (there or not), or inserts into a list."""
    return Op("add", path, value)


def remove(path: str) -> Op:
    return Op("remove", path)


class WatchKind(Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"  # gone, or no longer matched by the selector: read to know
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    kind: WatchKind
    object: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is listed and watched. `namespace` None: all of them. Selectors are written as kubectl writes them."""

    resource: Resource
    namespace: str | None = None
    fields: str = ""
    labels: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of a list. `continue_token` gets the rest (None: that was all); the version is where a watch goes on."""

    items: list[Manifest]
    resource_version: str
    continue_token: str | None = None


class Store(Protocol):
    """All methods raise StoreError's children, and nothing else for what the server or the network does."""

    async def get(self, ref: Ref) -> Manifest:
        """A quorum read (never from a cache). Raises NotFoundError."""
        ...

    async def create(self, resource: Resource, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Raises AlreadyExistsError, ContentRejectedError."""
        ...

    async def patch(self, ref: Ref, ops: Sequence[Op], *, subresource: str | None = None) -> Manifest:
        """One atomic JSON Patch. Raises PreconditionFailedError if a test doesn't hold (or a path is missing),
        ContentRejectedError if schema, CEL or size refuse the result. Returns the whole object after it."""
        ...

    async def delete(self, ref: Ref, *, uid: str) -> None:
        """Deletes that very object; NotFoundError if it isn't there (any more)."""
        ...

    async def list(self, selection: Selection, *, limit: int = 500, continue_token: str | None = None) -> Page: ...

    def watch(self, selection: Selection, resource_version: str) -> AsyncIterator[WatchEvent]:
        """Events after that version until the server closes the stream (then it just ends).
        Raises WatchExpiredError for a version that is gone."""
        ...

    async def fields(self, resource: Resource, part: str) -> set[str]:
        """The names of the fields that the server knows in `spec` or `status` of a kind."""
        ...

    async def aclose(self) -> None: ...
