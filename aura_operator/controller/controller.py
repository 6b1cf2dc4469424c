"""The controller process: one leads, watches, and reconciles; a resync does from lists what events do one by one.

Owns the process's loops. What is done about an object is tasks.py's and approvals.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import structlog
from kubernetes.aio.client import Configuration

from aura_operator.clock import Clock
from aura_operator.controller.agents import AgentReconciler
from aura_operator.controller.approvals import ApprovalReconciler
from aura_operator.controller.leader import Leadership
from aura_operator.controller.owners import Owners
from aura_operator.controller.schedule import Schedule
from aura_operator.controller.tasks import TaskReconciler
from aura_operator.controller.watching import watch
from aura_operator.core.ownership import Owner
from aura_operator.errors import NotFoundError, StoreError
from aura_operator.store.approvals import approval_view
from aura_operator.store.events import EventRecorder
from aura_operator.store.follow import Change, follow
from aura_operator.store.interface import Selection, Store
from aura_operator.store.leases import WORKER_SELECTOR, lease_ref
from aura_operator.store.resources import AGENTS, APPROVALS, LEASES, TASKS, Manifest, Ref, Resource
from aura_operator.store.view import task_ref, task_view

log = structlog.get_logger()

LEADER_LEASE = "aura-controller"
RESYNC_SECONDS = 180.0
CONTACT_SECONDS = 1.0
# So long one object may take. In a namespace without rights, or whose admission refuses, every wait is without end.
PATIENCE_SECONDS = 20.0
AGAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """How a controller runs. `namespaces` empty: all of them."""

    name: str
    pod_uid: str
    operator_namespace: str
    namespaces: tuple[str, ...] = ()


class Controller:
    """One controller process; the one that leads acts."""

    def __init__(self, settings: ControllerSettings, store: Store, configuration: Configuration, clock: Clock) -> None:
        self._settings = settings
        self._store = store
        self._configuration = configuration
        self._clock = clock
        self._owners = Owners(clock.boot())
        self._schedule = Schedule(clock)
        events = EventRecorder(store, clock, component="controller", instance=settings.name)
        self._tasks = TaskReconciler(store, clock, self._owners, self._schedule, events, settings.operator_namespace)
        self._approvals = ApprovalReconciler(store, clock, self._tasks, self._schedule, events)
        self._agents = AgentReconciler(store, clock)
        self._leadership = Leadership(
            store, clock, lease_ref(settings.operator_namespace, LEADER_LEASE), settings.name, settings.pod_uid
        )
        self._known: dict[str, Ref] = {}  # tasks by uid
        self._taking: dict[Owner, asyncio.Task[None]] = {}  # owners proven dead, whose tasks are being taken

    @property
    def leading(self) -> bool:
        return self._leadership.leading

    async def run(self, stop: asyncio.Event, on_start: Callable[[], None]) -> None:
        """Controls until `stop` is set. `on_start` is called whenever kopf has taken the signals for itself."""
        log.info("controller started", name=self._settings.name)
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._leadership.keep()),
                group.create_task(self._follow_leases()),
                group.create_task(self._keep_contact()),
                group.create_task(self._schedule.run(self._look)),
                group.create_task(self._resync_now_and_then()),
                group.create_task(
                    watch(
                        self._configuration,
                        self._settings.namespaces,
                        self._clock,
                        handlers={
                            AGENTS: self._agent_event,
                            APPROVALS: self._approval_event,
                            TASKS: self._task_event,
                        },
                        on_start=on_start,
                    )
                ),
            ]
            await stop.wait()
            for loop in [*loops, *self._taking.values()]:
                loop.cancel()
        await self._leadership.give_up()

    async def _task_event(self, manifest: Manifest, gone: bool) -> None:
        task = task_view(manifest)
        if gone:
            self._known.pop(task.uid, None)
            self._tasks.gone(task.uid, task.ref)
            return
        self._known[task.uid] = task.ref
        if self.leading:
            await self._guarded(task.ref, lambda: self._tasks.reconcile(task))
        elif task.owner is not None:  # so that a new leader knows since when an owner shows no sign
            self._owners.runs(task.uid, task.ref, task.owner, self._clock.boot())

    async def _approval_event(self, manifest: Manifest, gone: bool) -> None:
        approval = approval_view(manifest)
        if gone:
            self._approvals.gone(approval.ref, approval.request.task)
            # Whoever still waits for it asks again.
            self._schedule.at(task_ref(approval.ref.namespace, approval.request.task), self._clock.now())
        elif self.leading:
            await self._guarded(approval.ref, lambda: self._approvals.reconcile(approval))

    async def _agent_event(self, manifest: Manifest, gone: bool) -> None:
        if self.leading and not gone:
            metadata = manifest["metadata"]
            ref = Ref(resource=AGENTS, namespace=metadata["namespace"], name=metadata["name"])
            await self._guarded(ref, lambda: self._agents.reconcile(manifest))

    async def _look(self, ref: Ref) -> None:
        """A time has come for an object."""
        if not self.leading:
            return  # whoever leads has it in its own schedule; a resync follows if that will be us
        look = self._tasks.look if ref.resource == TASKS else self._approvals.look
        await self._guarded(ref, lambda: look(ref))

    async def _guarded(self, ref: Ref, act: Callable[[], Awaitable[None]]) -> None:
        """One object's trouble is logged and tried again later; it never holds up the others."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await act()
        except (StoreError, TimeoutError) as error:
            why = (
                str(error)
                or f"not done within {PATIENCE_SECONDS:g} s; an earlier line says what the API server answers"
            )
            log.warning("not reconciled", object=str(ref), error=why)
            if ref.resource in (TASKS, APPROVALS):
                self._schedule.at(ref, self._clock.now() + AGAIN_SECONDS)
        except Exception:
            log.exception("a fault of this operator; please report it", object=str(ref))

    async def _follow_leases(self) -> None:
        """A restarted container shows at once: its Lease has another incarnation."""
        selection = Selection(resource=LEASES, namespace=self._settings.operator_namespace, labels=WORKER_SELECTOR)
        async for seen in follow(self._store, selection, self._clock):
            if seen.change is Change.SYNCED:
                continue
            worker: str = seen.object["metadata"]["name"]
            if seen.change is Change.GONE:
                self._owners.lease_gone(worker)
                continue
            self._owners.lease(seen.object, self._clock.boot())
            await self._check(self._owners.of_worker(worker))

    async def _keep_contact(self) -> None:
        """Looks at all Leases every second: that is what "uninterrupted contact" means here."""
        selection = Selection(resource=LEASES, namespace=self._settings.operator_namespace, labels=WORKER_SELECTOR)
        while True:
            try:
                page = await self._store.list(selection)
            except StoreError as error:
                log.debug("no contact", error=str(error))
            else:
                now = self._clock.boot()
                self._owners.contact(now)
                for lease in page.items:
                    self._owners.lease(lease, now)
                await self._check(self._owners.all())
            await self._clock.sleep(CONTACT_SECONDS)

    async def _check(self, owners: list[Owner]) -> None:
        if not self.leading:
            return
        for owner in owners:
            proof = self._owners.proof(owner, self._clock.boot())
            if proof is not None and owner not in self._taking:
                ref = lease_ref(self._settings.operator_namespace, owner.worker)
                # On its own: whoever calls this keeps the contact on which all proofs rest.
                taking = asyncio.create_task(self._guarded(ref, partial(self._tasks.orphaned, owner, proof)))
                self._taking[owner] = taking
                taking.add_done_callback(partial(self._taken, owner))

    def _taken(self, owner: Owner, _: asyncio.Task[None]) -> None:
        self._taking.pop(owner, None)

    async def _resync_now_and_then(self) -> None:
        while True:
            try:
                async with asyncio.timeout(RESYNC_SECONDS):
                    await self._leadership.gained.wait()
            except TimeoutError:
                pass
            self._leadership.gained.clear()
            if self.leading:
                await self._resync()

    async def _resync(self) -> None:
        """Does for all objects what their events would have done; what disappeared unseen is forgotten."""
        started = self._clock.boot()
        listed: set[str] = set()
        namespaces = self._settings.namespaces or (None,)
        whole = await asyncio.gather(*(self._resync_of(namespace, listed) for namespace in namespaces))
        if all(whole):
            for uid in [uid for uid in self._known if uid not in listed]:
                await self._forget(uid)
        log.info("resynced", tasks=len(listed), seconds=round(self._clock.boot() - started, 3))

    async def _resync_of(self, namespace: str | None, listed: set[str]) -> bool:
        """The same for one namespace; False if it can't be listed now, which holds up no other."""
        try:
            async for manifest in self._all(AGENTS, namespace):
                await self._agent_event(manifest, False)
            async for manifest in self._all(APPROVALS, namespace):
                await self._approval_event(manifest, False)
            async for manifest in self._all(TASKS, namespace):
                listed.add(manifest["metadata"]["uid"])
                await self._task_event(manifest, False)
        except StoreError as error:
            log.warning("not resynced", namespace=namespace, error=str(error))
            return False
        except Exception:
            log.exception("a fault of this operator; please report it", namespace=namespace)
            return False
        return True

    async def _forget(self, uid: str) -> None:
        """A task that a list didn't show: created since, or gone without an event (seen after API outages)."""
        ref = self._known[uid]
        try:
            found = await self._store.get(ref)
            if found["metadata"]["uid"] == uid:
                return
        except NotFoundError:
            log.debug("a task is gone, and no event said so", task=str(ref))
        except StoreError as error:
            log.warning("can't tell whether a task is gone", task=str(ref), error=str(error))
            return
        self._known.pop(uid, None)
        self._tasks.gone(uid, ref)

    async def _all(self, resource: Resource, namespace: str | None) -> AsyncIterator[Manifest]:
        selection = Selection(resource=resource, namespace=namespace)
        continue_token: str | None = None
        while True:
            page = await self._store.list(selection, continue_token=continue_token)
            for item in page.items:
                yield item
            continue_token = page.continue_token
            if continue_token is None:
                return
