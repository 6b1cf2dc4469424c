"""The controller process: one leads, and brings each object on, again and again, to what its present state calls for.

Owns the process's loops and the list of its concerns: time and dispatch are here, and nothing of what is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from aura_operator.clock import Clock
from aura_operator.controller.contact import Contact
from aura_operator.controller.events import EventSource, Watch
from aura_operator.controller.health import Health
from aura_operator.controller.indexes.approvals import ApprovalIndex
from aura_operator.controller.indexes.known import Known
from aura_operator.controller.indexes.objects import Objects, ref_of
from aura_operator.controller.indexes.parked import ParkedTasks
from aura_operator.controller.indexes.pending import PendingTasks
from aura_operator.controller.leader import Leadership
from aura_operator.controller.owners import Owners
from aura_operator.controller.reconciler import VIEWS, Index, Reconciler
from aura_operator.controller.reconcilers.agents import AgentReadiness
from aura_operator.controller.reconcilers.explaining import Explaining
from aura_operator.controller.reconcilers.orphans import Orphaning
from aura_operator.controller.reconcilers.settling import Settling
from aura_operator.controller.reconcilers.ttl import TimeToLive
from aura_operator.controller.reconcilers.waking import Waking, WakingByApproval
from aura_operator.controller.reconcilers.withdrawing import Withdrawing
from aura_operator.controller.resync import Resync, urgent
from aura_operator.controller.schedule import Schedule
from aura_operator.controller.work import Work
from aura_operator.errors import NotFoundError, StoreError
from aura_operator.store.commit import get_retrying
from aura_operator.store.events import EventRecorder
from aura_operator.store.follow import Change, Seen
from aura_operator.store.interface import Store
from aura_operator.store.leases import lease_ref
from aura_operator.store.resources import Manifest, Ref, Resource

log = structlog.get_logger()

LEADER_LEASE = "aura-controller"
RESYNC_SECONDS = 180.0
# The longest for one concern of one object. In a namespace without rights, or whose admission refuses, it never ends.
PATIENCE_SECONDS = 20.0
AGAIN_SECONDS = 5.0
HEAD_START_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """How a controller runs. `name` is unique to this life of the process. `namespaces` empty: all of them."""

    name: str
    pod_uid: str
    operator_namespace: str
    namespaces: tuple[str, ...] = ()


class Controller:
    """One controller process; of several, the one that leads acts.

    `events` is where it hears of changes: KopfEvents in production, StoreEvents over any other Store. Both are given
    the same namespaces as the settings.

        controller = Controller(settings, store, clock, StoreEvents(store, clock))
        await controller.run(stop)
    """

    def __init__(self, settings: ControllerSettings, store: Store, clock: Clock, events: EventSource) -> None:
        home = settings.operator_namespace
        self._settings = settings
        self._store = store
        self._clock = clock
        owners = Owners(clock.boot())
        approvals, parked, pending = ApprovalIndex(), ParkedTasks(), PendingTasks(clock)
        recorder = EventRecorder(store, clock, component="controller", instance=settings.name)
        self._contact = Contact(store, clock, owners, home)
        reconcilers: tuple[Reconciler[Any], ...] = (
            Orphaning(store, clock, owners, recorder, operator_namespace=home),
            WakingByApproval(store, clock, parked),
            Waking(store, clock, approvals),
            Settling(store, clock, approvals, recorder),
            Withdrawing(store, clock, approvals),
            Explaining(store, clock, owners, pending),
            TimeToLive(store, clock),
            AgentReadiness(store, clock),
        )
        indexes: tuple[Index[Any], ...] = (self._contact, approvals, parked, pending)
        self._reconcilers = {kind: [each for each in reconcilers if each.resource == kind] for kind in VIEWS}
        self._leadership = Leadership(
            store, clock, lease_ref(home, LEADER_LEASE), holder=settings.name, pod_uid=settings.pod_uid
        )
        self._schedule = Schedule(clock)
        self._work = Work(self._look)
        known = Known()
        self._objects = Objects(clock, indexes, known=known, concerned=self._work.soon)
        self._watch = Watch(events, clock)
        self._resync = Resync(
            store, clock, known, namespaces=settings.namespaces, listed=self._listed, missing=self._work.later
        )
        self._health = Health(clock, self._watch, self._contact, self._resync, known)

    @property
    def leading(self) -> bool:
        return self._leadership.leading

    def not_ready(self) -> str | None:
        """Why this controller couldn't do its part now, None if it could. One that doesn't lead is ready too."""
        return self._health.not_ready()

    def unhealthy(self) -> str | None:
        """Why only a restart would help, None while there is hope. An API server that is down is no reason."""
        return self._health.unhealthy()

    async def run(self, stop: asyncio.Event) -> None:
        """Controls until `stop` is set, then lets another lead at once."""
        log.info("controller started", name=self._settings.name)
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(loop)
                for loop in (
                    self._leadership.keep(),
                    self._contact.run(self._work.soon),
                    self._schedule.run(self._work.soon),
                    self._work.run(),
                    self._resync_now_and_then(),
                    self._watch.run(tuple(VIEWS), self._heard),
                )
            ]
            await stop.wait()
            for loop in loops:
                loop.cancel()
        await self._leadership.give_up()

    def _heard(self, resource: Resource, seen: Seen) -> None:
        """An event. Whoever doesn't lead remembers it only."""
        ref = ref_of(resource, seen.object)
        with _reported(ref):
            if seen.change is Change.GONE:
                if self._objects.gone(ref, seen.object["metadata"]["uid"]):
                    self._schedule.at(ref, None)
            else:
                self._put(ref, self._objects.heard(ref, seen.object))

    def _listed(self, ref: Ref, manifest: Manifest, began: float) -> None:
        with _reported(ref):
            view = self._objects.listed(ref, manifest, began)
            if view is not None:  # else an event has told more, and it was put then
                self._put(ref, view)

    def _put(self, ref: Ref, view: Any) -> None:
        if urgent(view):  # also of events: a source begins by telling everything
            self._work.soon(ref, view)
        else:
            self._work.later(ref, view)

    async def _look(self, ref: Ref, seen: Any) -> None:
        """Lets all concerns look at an object; notes when to look again."""
        if not self.leading:
            return  # whoever leads does it; if that is us one day, we begin with a resync
        view = seen if seen is not None else await self._read(ref)
        if view is None:
            return
        times = await self._reconciled_by_all(ref, view)
        self._schedule.at(ref, min((time for time in times if time is not None), default=None))

    async def _read(self, ref: Ref) -> Any:
        """The object as it is now; None if it is gone, or can't be read."""
        with _reported(ref):
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    return self._objects.read(ref, await get_retrying(self._store, ref, self._clock))
            except NotFoundError:
                self._objects.gone(ref)
            except (StoreError, TimeoutError) as error:
                log.warning("not read", object=str(ref), error=_words(error))
                self._schedule.at(ref, self._clock.now() + AGAIN_SECONDS)
        return None

    async def _reconciled_by_all(self, ref: Ref, view: Any) -> list[float | None]:
        """Side by side, except that each has a head start over those after it: what somebody waits for goes first."""
        looks: list[asyncio.Task[float | None]] = []
        async with asyncio.TaskGroup() as group:
            for reconciler in self._reconcilers[ref.resource]:
                looks.append(group.create_task(self._reconciled(reconciler, ref, view)))
                await asyncio.wait(looks[-1:], timeout=HEAD_START_SECONDS)
        return [look.result() for look in looks]

    async def _reconciled(self, reconciler: Reconciler[Any], ref: Ref, view: Any) -> float | None:
        """One concern's trouble with one object is logged and tried again; it never holds up the others."""
        concern = type(reconciler).__name__
        again: float | None = None
        with _reported(ref, concern=concern):
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    again = await reconciler.reconcile(view)
            except (StoreError, TimeoutError) as error:
                log.warning("not reconciled", concern=concern, object=str(ref), error=_words(error))
                again = self._clock.now() + AGAIN_SECONDS
        return again

    async def _resync_now_and_then(self) -> None:
        while True:
            await self._leadership.gained.wait(RESYNC_SECONDS)
            if self.leading:
                for ref in self._contact.left_behind():
                    self._work.soon(ref)
                await self._resync.run()
            self._resync.turned()


@contextmanager
def _reported(ref: Ref, **where: str) -> Iterator[None]:
    """What nobody expected concerns this object only: it is logged, and the others are looked at."""
    try:
        yield
    except Exception:
        log.exception("a fault of this operator; please report it", object=str(ref), **where)


def _words(error: StoreError | TimeoutError) -> str:
    return str(error) or f"not done within {PATIENCE_SECONDS:g} s; an earlier line says what the API server answers"
