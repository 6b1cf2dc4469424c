"""What a reconciler is, and what an index is. Owns the two protocols; controller.py owns the lists of both.

A reconciler is one concern about one kind of object: it gathers, decides by a pure function, and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from aura_operator.store.agents import agent_view
from aura_operator.store.approvals import approval_view
from aura_operator.store.resources import AGENTS, APPROVALS, TASKS, Manifest, Ref, Resource
from aura_operator.store.view import task_view

V = TypeVar("V", contravariant=True)

VIEWS: Mapping[Resource, Callable[[Manifest], Any]] = {
    APPROVALS: approval_view,  # a resync goes in this order: what is known of approvals decides about tasks
    TASKS: task_view,
    AGENTS: agent_view,
}
"""The kinds that are watched, and what a reconciler gets of an object of each."""


class Reconciler(Protocol[V]):
    """One concern about the objects of one kind. Several may have the same kind; they run side by side."""

    @property
    def resource(self) -> Resource: ...

    async def reconcile(self, seen: V, /) -> float | None:
        """Does what the object's present state calls for; returns when to look again (Unix seconds), None if nothing
        about it happens by itself.

        Level-based: an object that is seen twice, late, or not at each change comes to the same end. Raises StoreError
        for what the server does; the object is then looked at again a little later.
        """
        ...


class Index(Protocol[V]):
    """What is remembered of all objects of one kind, for reconcilers of others. Never writes; also kept by a
    controller that doesn't lead, so that it knows what it needs when it does."""

    @property
    def resource(self) -> Resource: ...

    def seen(self, seen: V, /) -> None: ...

    def gone(self, ref: Ref, uid: str) -> Sequence[Ref]:
        """Forgets an object; returns what its end concerns and is to be looked at now."""
        ...
