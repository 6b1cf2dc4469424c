"""One task in this worker's hands: its state, its journal and what it runs with. Shared by those who perform its
commands; runner.py decides what they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from aura_operator.agent.models.conversation import Conversation
from aura_operator.agent.specs import ToolSpec
from aura_operator.auto_reset import AutoResetEvent
from aura_operator.clock import Clock
from aura_operator.core.absorb import World
from aura_operator.core.approvals import Decision
from aura_operator.core.codec import encode, schema_of
from aura_operator.core.entries import Entry, ModelAnswered
from aura_operator.core.fold import apply
from aura_operator.core.ownership import Owner
from aura_operator.core.recovery import found_again
from aura_operator.errors import FencedError, UnreadableObjectError
from aura_operator.store.commit import describe, get_retrying
from aura_operator.store.events import EventRecorder
from aura_operator.store.interface import Store
from aura_operator.store.resources import Manifest
from aura_operator.store.task_writes import OwnedTask
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker.lease import WorkerLease
from aura_operator.worker.runtime.agent_runtime import AgentRuntime
from aura_operator.worker.task import reporting
from aura_operator.worker.task.recall import Recalled
from aura_operator.worker.task.writer import LINGER_SECONDS, JournalWriter, Objects

FOUND_AGAIN_LINGER_SECONDS = 1.0
"""How long an entry that would be found again waits for one that is written anyway."""

SETTLED_WITHIN_SECONDS = 1.0  # of a claim: the controller settles an approval and wakes its task side by side
LISTED_SECONDS = 1.0  # how long a tool that was listed before the claim is as good as listed now


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """What every run of this worker shares."""

    store: Store
    clock: Clock
    lease: WorkerLease
    owner: Owner
    events: EventRecorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What was read before the claim. `approvals` by name. `tools`: those that the approvals are about, as their
    servers listed them after the task was woken; None for one that is gone. `listed_at` is when that was begun."""

    approvals: Mapping[str, Manifest] = field(default_factory=dict)
    tools: Mapping[str, ToolSpec | None] = field(default_factory=dict)
    listed_at: float = 0.0


class LiveTask:
    """The live counterpart of a journal."""

    def __init__(
        self,
        context: WorkerContext,
        task: TaskView,
        recalled: Recalled,
        runtime: AgentRuntime,
        ahead: Ahead,
        *,
        clock_lead_seconds: float = 0.0,
    ) -> None:
        self.context = context
        self._clock_lead_seconds = clock_lead_seconds
        self.task = task
        self.state = recalled.state
        self.payloads = recalled.payloads
        self.runtime = runtime
        self.conversation = Conversation(runtime.spec.system_prompt, self.payloads.text)
        self.approvals = dict(ahead.approvals)  # as they were at the claim; each is looked at once
        self._listed, self._listed_at = dict(ahead.tools), ahead.listed_at
        self.asked: set[str] = set()  # approvals that are known to be there
        self.decisions: dict[tuple[int, int], Decision] = {}
        self.arguments: dict[int, str] = {}  # of the calls that this owner has planned; a recovery reads them back
        self.wake = AutoResetEvent()
        self.log = structlog.get_logger().bind(task=str(task.ref), epoch=task.epoch, worker=context.owner.worker)
        self._authorised_lapses = context.lease.lapses
        self._last_answer = 0  # position in the journal after the last model response
        self._recorded_at = self.now()
        self._taken_at = context.clock.boot()
        self.writer = JournalWriter(
            context.store,
            context.clock,
            task.manifest,
            owned_task(task, context.owner),
            segments=recalled.segments,
            fields=lambda: reporting.running(self.state, self._recorded_at),
            answered=self.seen,
        )

    def now(self) -> float:
        """Unix seconds by the clock that counts: the controller's, where it has found a timer due before this worker's
        own clock does. Else a worker whose clock is behind would park again at once, and be woken again at once."""
        return self.context.clock.now() + self._clock_lead_seconds

    def about_to_be_settled(self, approval: str) -> bool:
        """Whether the task was woken for this approval, and the write that settles it may still be on its way."""
        return approval in self.task.fired and self.context.clock.boot() - self._taken_at < SETTLED_WITHIN_SECONDS

    def seen(self, manifest: Manifest) -> None:
        """Takes in the object as an answer or a watch told it: every answer carries the spec, so a dead watch can't
        hide a cancel."""
        known, told = self.task.manifest["metadata"], manifest["metadata"]
        # The spec's generation tells whether a person changed anything; the status is ours while we own the task.
        if told.get("generation", 0) <= known.get("generation", 0):
            return
        try:
            self.task = task_view(manifest)
        except UnreadableObjectError as error:
            self.log.warning("what a person asks for now isn't known here", error=str(error))
        self.wake.set()

    def record(self, entry: Entry, objects: Objects = (), *, schema: int = 1) -> None:
        """Adds an entry: the state has it at once, the store soon. `schema` is what its payload needs.

        It rings no bell: the loop records by itself, and whoever performs work rings by ending.
        """
        patient = found_again(self.state, entry)
        self.state = apply(self.state, entry)
        position = self.writer.record(
            encode(entry),
            objects,
            schema=max(schema, schema_of(entry)),
            within_seconds=FOUND_AGAIN_LINGER_SECONDS if patient else LINGER_SECONDS,
        )
        if isinstance(entry, ModelAnswered):
            self._last_answer = position
        self._recorded_at = entry.at

    async def tool(self, name: str) -> ToolSpec | None:
        """A tool as its server lists it after the decision about it, None if it is gone. Raises ToolServerError."""
        if name in self._listed and self.context.clock.boot() - self._listed_at < LISTED_SECONDS:
            return self._listed.pop(name)
        return await self.runtime.toolbox.fresh(name)

    async def last_answer_written(self) -> None:
        """No second model response waits unwritten."""
        await self.writer.barrier(self._last_answer)

    async def authorise(self) -> None:
        """Returns when an effect may be sent right now: this worker's deadline has not passed, and, if it had passed
        since the task was last read, the task is still ours. Raises FencedError if it isn't."""
        lease = self.context.lease
        while not (lease.may_start() and lease.lapses == self._authorised_lapses):
            if not lease.may_start():
                await lease.until_renewed()
            lapses = lease.lapses
            manifest = await get_retrying(self.context.store, self.task.ref, self.context.clock)
            found = task_view(manifest)
            if found.uid != self.task.uid or not found.owned_by(self.context.owner):
                raise FencedError(f"{self.task.ref} was taken over while the Lease had lapsed: {describe(manifest)}")
            self._authorised_lapses = lapses

    def world(self) -> World:
        task = self.task
        return World(
            now=self.now(),
            desired=task.desired,
            steering=task.steering,
            decisions=self.decisions,
            fired=frozenset(task.fired),
            deadline=task.deadline,
        )

    def meta(self, key: str) -> Mapping[str, object]:
        """What a tool server is told with each call (docs/tools.md), so that it can refuse a stale or doubled one."""
        return {
            "aura.mezmo.com/run": self.state.run,
            "aura.mezmo.com/epoch": self.state.epoch,
            "aura.mezmo.com/idempotencyKey": key,
        }


def owned_task(task: TaskView, owner: Owner) -> OwnedTask:
    """What the owner of a task holds, as its object says."""
    journal = task.journal
    if journal is None:
        raise ValueError(f"{task.ref} has no journal: nobody has claimed it")
    return OwnedTask(
        ref=task.ref,
        uid=task.uid,
        epoch=task.epoch,
        owner=owner,
        schema=journal.schema,
        next=journal.next,
        head=journal.head,
        entries=journal.entries,
        sealed=None if journal.sealed is None else (journal.sealed, journal.sealed_next),
    )
