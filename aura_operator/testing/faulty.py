"""A Store that fails on demand: wraps any Store. Owns the plan of faults; what the requests do is the inner Store's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aura_operator.clock import Clock
from aura_operator.errors import OutcomeUnknownError, StoreError
from aura_operator.store.interface import Op, Page, Selection, Store, WatchEvent
from aura_operator.store.resources import Manifest, Ref, Resource

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. `ref` is None for lists and watches; `body` is what was written: operations, a manifest, or None."""

    number: int
    method: str
    resource: Resource
    ref: Ref | None = None
    selection: Selection | None = None
    body: Any = None

    @property
    def writes(self) -> bool:
        return self.method in ("create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Refuse:
    """Raises the error; the request is not carried out."""

    error: StoreError


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Carries the request out; what became of it stays unknown, also if it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """The caller is told that the outcome is unknown; the request is carried out `seconds` later."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Waits before the request is carried out."""

    seconds: float


Fault = Refuse | LoseAnswer | Late | Slow
Predicate = Callable[[Call], bool]
Hook = Callable[[Call], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class _Rule:
    matches: Predicate
    fault: Fault
    nth: int | None
    matched: int = field(default=0, init=False)

    def fault_for(self, call: Call) -> Fault | None:
        if not self.matches(call):
            return None
        self.matched += 1
        return self.fault if self.nth in (None, self.matched) else None


def calls(method: str | None = None, resource: Resource | None = None) -> Predicate:
    """Says yes to requests of that method, of that kind."""
    return lambda call: method in (None, call.method) and resource in (None, call.resource)


class FaultyStore:
    """`store.add(LoseAnswer(), calls("patch"), nth=2)`. All rules count each request; the first fault is taken.

    `before` and `after` are awaited around each request that reaches the inner store (watches: their start only). A
    late request is carried out by `settle`, or by the first request after its time.
    """

    def __init__(self, inner: Store, clock: Clock) -> None:
        self.inner = inner
        self.log: list[Call] = []
        self.before: Hook | None = None
        self.after: Hook | None = None
        self._clock = clock
        self._rules: list[_Rule] = []
        self._late: list[tuple[float, Callable[[], Awaitable[Any]]]] = []

    def add(self, fault: Fault, matches: Predicate = lambda call: True, *, nth: int | None = None) -> None:
        """Plans a fault for the `nth` request that matches (from 1), or for all of them."""
        self._rules.append(_Rule(matches=matches, fault=fault, nth=nth))

    def clear(self) -> None:
        """Takes all faults back."""
        self._rules.clear()

    async def settle(self) -> None:
        """Carries out what is still on its way."""
        late, self._late = self._late, []
        for _, act in late:
            await _ignored(act)

    async def get(self, ref: Ref) -> Manifest:
        call = self._call("get", ref.resource, ref=ref)
        return await self._through(call, lambda: self.inner.get(ref))

    async def create(self, resource: Resource, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        metadata = manifest["metadata"]
        ref = Ref(resource=resource, namespace=metadata["namespace"], name=metadata["name"])
        call = self._call("create", resource, ref=ref, body=manifest)
        return await self._through(call, lambda: self.inner.create(resource, manifest, dry_run=dry_run))

    async def patch(self, ref: Ref, ops: Sequence[Op], *, subresource: str | None = None) -> Manifest:
        call = self._call("patch", ref.resource, ref=ref, body=ops)
        return await self._through(call, lambda: self.inner.patch(ref, ops, subresource=subresource))

    async def delete(self, ref: Ref, *, uid: str) -> None:
        call = self._call("delete", ref.resource, ref=ref)
        await self._through(call, lambda: self.inner.delete(ref, uid=uid))

    async def list(self, selection: Selection, *, limit: int = 500, continue_token: str | None = None) -> Page:
        call = self._call("list", selection.resource, selection=selection)
        return await self._through(call, lambda: self.inner.list(selection, limit=limit, continue_token=continue_token))

    async def watch(self, selection: Selection, resource_version: str) -> AsyncIterator[WatchEvent]:
        async def nothing() -> None: ...

        await self._through(self._call("watch", selection.resource, selection=selection), nothing)
        async for event in self.inner.watch(selection, resource_version):
            yield event

    async def fields(self, resource: Resource, part: str) -> set[str]:
        return await self._through(self._call("fields", resource), lambda: self.inner.fields(resource, part))

    async def aclose(self) -> None:
        await self.inner.aclose()

    def _call(self, method: str, resource: Resource, **rest: Any) -> Call:
        call = Call(number=len(self.log) + 1, method=method, resource=resource, **rest)
        self.log.append(call)
        return call

    async def _through(self, call: Call, act: Callable[[], Awaitable[T]]) -> T:
        await self._arrive()
        faults = [rule.fault_for(call) for rule in self._rules]
        fault = next((fault for fault in faults if fault is not None), None)
        what = f"request {call.number}, {call.method} of {call.ref or call.resource.plural}"
        match fault:
            case Refuse(error=error):
                raise error
            case Late(seconds=seconds):
                self._late.append((self._clock.boot() + seconds, act))
                raise OutcomeUnknownError(f"{what}: no answer; it may or may not have been done")
            case LoseAnswer():
                await _ignored(lambda: self._carried_out(call, act))
                raise OutcomeUnknownError(f"{what}: no answer; it may or may not have been done")
            case Slow(seconds=seconds):
                await self._clock.sleep(seconds)
            case None:
                pass
        return await self._carried_out(call, act)

    async def _carried_out(self, call: Call, act: Callable[[], Awaitable[T]]) -> T:
        if self.before is not None:
            await self.before(call)
        answer = await act()
        if self.after is not None:
            await self.after(call)
        return answer

    async def _arrive(self) -> None:
        now = self._clock.boot()
        due = [act for at, act in self._late if at <= now]
        self._late = [(at, act) for at, act in self._late if at > now]
        for act in due:
            await _ignored(act)


async def _ignored(act: Callable[[], Awaitable[Any]]) -> None:
    """Carries a request out whose answer reaches nobody."""
    try:
        await act()
    except StoreError:
        return  # the server refused it, and nobody is there to be told
