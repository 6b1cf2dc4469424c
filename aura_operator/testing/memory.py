"""The Store in memory: as honest as our code needs it, for tests that want thousands of writes in a second.

Owns objects, versions and collection with the owner; watches are memory_watch.py's; schema, rules, patches and
selectors have modules of their own. Of admission it has what is filed and stamped; nobody is refused for who he is.
"""

from __future__ import annotations

import asyncio
import builtins
import uuid
from collections.abc import AsyncIterator, Sequence

import orjson

from aura_operator.clock import Clock, SystemClock
from aura_operator.core.instants import to_second_text
from aura_operator.errors import (
    AlreadyExistsError,
    ContentRejectedError,
    NotFoundError,
    PreconditionFailedError,
    WatchExpiredError,
)
from aura_operator.store.interface import Op, Page, Selection, WatchEvent
from aura_operator.store.kube import MAX_BODY_BYTES
from aura_operator.store.resources import APPROVALS, TASKS, Manifest, Ref, Resource
from aura_operator.testing import memory_rules, memory_schema, memory_select
from aura_operator.testing.memory_patch import copied, patched
from aura_operator.testing.memory_watch import History

MAX_OBJECT_BYTES = 1_500_000  # etcd's bound


class MemoryStore:
    """Objects of any kind. `user` is the requester of tasks that name none, and whoever votes.

    Every request yields to the loop before it is carried out and before it is answered, so that requests made side by
    side meet in every order that a test's schedule allows.
    """

    def __init__(self, clock: Clock | None = None, *, user: str = "tester") -> None:
        self._clock = clock or SystemClock()
        self._user = user
        self._objects: dict[Ref, Manifest] = {}
        self._ended_uids: set[str] = set()
        self._pages: dict[str, tuple[str, list[Manifest]]] = {}
        self._history = History()

    async def get(self, ref: Ref) -> Manifest:
        await asyncio.sleep(0)
        found = copied(self._found(ref, f"reading {ref}"))
        await asyncio.sleep(0)
        return found

    async def create(self, resource: Resource, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        metadata = manifest["metadata"]
        ref = Ref(resource=resource, namespace=metadata["namespace"], name=metadata["name"])
        what = f"creating {ref}"
        await asyncio.sleep(0)
        _check_size(len(orjson.dumps(manifest)), MAX_BODY_BYTES, what)
        if ref in self._objects:
            raise AlreadyExistsError(f"{what}: it is there already (409)")
        created = self._filed(resource, self._born(resource, copied(manifest)))
        memory_schema.check(resource, created, what)
        memory_rules.check(resource, None, created, what)
        if not dry_run:
            self._keep(ref, None, created)
            self._collect()
        await asyncio.sleep(0)
        return copied(created)

    async def patch(self, ref: Ref, ops: Sequence[Op], *, subresource: str | None = None) -> Manifest:
        what = f"writing {ref}"
        await asyncio.sleep(0)
        _check_size(len(orjson.dumps([op.to_json() for op in ops])), MAX_BODY_BYTES, what)
        old = self._found(ref, what)
        if subresource is not None and (subresource != "status" or not _has_status(ref.resource)):
            raise NotFoundError(f"{what}: the server could not find {subresource} of it (404)")
        new = self._filed(ref.resource, _merged(ref.resource, old, patched(old, ops, what), subresource))
        memory_schema.defaulted(ref.resource, new)
        memory_schema.check(ref.resource, new, what)
        memory_rules.check(ref.resource, old, new, what)
        _check_size(len(orjson.dumps(new)), MAX_OBJECT_BYTES, what)
        if new["metadata"]["uid"] != old["metadata"]["uid"]:
            raise PreconditionFailedError(f"{what}: its uid is another (409)")
        if new != old:  # a patch that changes nothing keeps the resourceVersion
            if new.get("spec") != old.get("spec"):
                new["metadata"]["generation"] += 1
            if "deletionTimestamp" in new["metadata"] and not new["metadata"].get("finalizers"):
                self._end(ref, new)
            else:
                self._keep(ref, old, new)
        await asyncio.sleep(0)
        return copied(new)

    async def delete(self, ref: Ref, *, uid: str) -> None:
        await asyncio.sleep(0)
        found = self._found(ref, f"deleting {ref}")
        if found["metadata"]["uid"] != uid:
            raise NotFoundError(f"deleting {ref}: one with another uid is there (409)")
        if found["metadata"].get("finalizers"):
            marked = copied(found)
            marked["metadata"]["deletionTimestamp"] = to_second_text(self._clock.now())
            self._keep(ref, found, marked)
        else:
            self._end(ref, found)
            self._collect()
        await asyncio.sleep(0)

    async def list(self, selection: Selection, *, limit: int = 500, continue_token: str | None = None) -> Page:
        await asyncio.sleep(0)
        memory_select.check(selection)
        if continue_token is None:
            version = self._history.version
            rest = [item for _, item in sorted(self._of(selection.resource)) if memory_select.matches(selection, item)]
        elif continue_token in self._pages:
            version, rest = self._pages[continue_token]
        else:
            raise WatchExpiredError(f"listing {selection.resource.plural}: the provided continue parameter is too old")
        token = None
        if len(rest) > limit:
            token = uuid.uuid4().hex
            self._pages[token] = (version, rest[limit:])  # of the state at the first page, as the server has it
        return Page(items=copied(rest[:limit]), resource_version=version, continue_token=token)

    async def watch(self, selection: Selection, resource_version: str) -> AsyncIterator[WatchEvent]:
        await asyncio.sleep(0)
        memory_select.check(selection)
        async for event in self._history.events(selection, resource_version):
            yield event

    async def fields(self, resource: Resource, part: str) -> set[str]:
        await asyncio.sleep(0)
        return memory_schema.fields(resource, part)

    async def aclose(self) -> None:
        """Nothing is held open."""

    # What only a test does

    def compact(self) -> None:
        """Forgets the past: watches and pages that begin before now are answered with 410."""
        self._pages.clear()
        self._history.compact()

    def cut_watches(self) -> None:
        """Closes all open watches in good order, as the server does now and then."""
        self._history.cut()

    def bookmark(self) -> None:
        """Sends a bookmark to all open watches."""
        self._history.bookmark()

    # How it is done

    def _found(self, ref: Ref, what: str) -> Manifest:
        found = self._objects.get(ref)
        if found is None:
            raise NotFoundError(f"{what}: not found (404)")
        return found

    def _of(self, resource: Resource) -> builtins.list[tuple[tuple[str, str], Manifest]]:
        return [((ref.namespace, ref.name), item) for ref, item in self._objects.items() if ref.resource == resource]

    def _born(self, resource: Resource, manifest: Manifest) -> Manifest:
        manifest["metadata"] |= {
            "uid": str(uuid.uuid4()),
            "generation": 1,
            "creationTimestamp": to_second_text(self._clock.now()),
        }
        if _has_status(resource):
            manifest.pop("status", None)
        if resource == TASKS:
            manifest["spec"].setdefault("requester", self._user)
        return memory_schema.defaulted(resource, manifest)

    def _filed(self, resource: Resource, manifest: Manifest) -> Manifest:
        """Moves a vote to where admission files it."""
        spec = manifest.get("spec", {})
        if resource == APPROVALS and "decision" in spec:
            votes = spec.get("decisions", {}) | {self._user: spec["decision"]}
            rest = {name: value for name, value in spec.items() if name != "decision"}
            return manifest | {"spec": rest | {"decisions": votes}}
        return manifest

    def _keep(self, ref: Ref, old: Manifest | None, new: Manifest) -> None:
        new["metadata"]["resourceVersion"] = self._history.happened(ref.resource, old, new)
        self._objects[ref] = copied(new)

    def _end(self, ref: Ref, last: Manifest) -> None:
        del self._objects[ref]
        self._ended_uids.add(last["metadata"]["uid"])
        self._history.happened(ref.resource, last, None)

    def _collect(self) -> None:
        """Deletes what belonged to objects that are gone. Owners that never were here (Pods) are left alone."""
        while doomed := [ref for ref, item in self._objects.items() if self._is_orphan(item)]:
            for ref in doomed:
                self._end(ref, self._objects[ref])

    def _is_orphan(self, manifest: Manifest) -> bool:
        owners = manifest["metadata"].get("ownerReferences", ())
        return bool(owners) and all(owner["uid"] in self._ended_uids for owner in owners)


def _has_status(resource: Resource) -> bool:
    definition = memory_schema.definition_of(resource)
    return definition is not None and definition.has_status


def _merged(resource: Resource, old: Manifest, new: Manifest, subresource: str | None) -> Manifest:
    """Only what the endpoint writes is taken from `new`: status through /status, all else but status otherwise."""
    if subresource == "status":
        return old | ({"status": new["status"]} if "status" in new else {})
    if not _has_status(resource):
        return new
    kept = {name: value for name, value in new.items() if name != "status"}
    return kept | ({"status": old["status"]} if "status" in old else {})


def _check_size(size_bytes: int, most: int, what: str) -> None:
    if size_bytes > most:
        raise ContentRejectedError(f"{what}: {size_bytes} bytes are too large (at most {most})")
