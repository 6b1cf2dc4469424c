"""What this worker runs, a slot a task, and what it does about tasks that are said to be its own and aren't running.

Owns the slots and who is in them. Not here: which task comes next (candidates.py), what is done with it (intake.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import structlog

from aura_operator.auto_reset import AutoResetEvent
from aura_operator.errors import AuraError, NotFoundError, StoreError, UnreadableObjectError
from aura_operator.foreign import contained
from aura_operator.store.resources import Manifest
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker.candidates import Candidates, ends_only, quarantined
from aura_operator.worker.intake import Intake
from aura_operator.worker.runtime.agent_runtime import RuntimeSource
from aura_operator.worker.task.ending import Ended, hand_back
from aura_operator.worker.task.live import WorkerContext

log = structlog.get_logger()

RETRY_SECONDS = 1.0
RETURN_RETRY_SECONDS = 10.0


@dataclass(slots=True, kw_only=True, eq=False)
class _Slot:
    intake: Intake
    work: asyncio.Task[None] = field(init=False)


class Slots:
    """`number` tasks at once, for as long as its `async with` block lasts. `freed` is called whenever one ends."""

    def __init__(
        self,
        number: int,
        *,
        context: WorkerContext,
        runtimes: RuntimeSource,
        candidates: Candidates,
        freed: Callable[[], None],
    ) -> None:
        self._number = number
        self._context = context
        self._runtimes = runtimes
        self._candidates = candidates
        self._freed = freed
        self._group = asyncio.TaskGroup()
        self._slots: dict[str, _Slot] = {}
        self._returning: dict[str, asyncio.Task[None]] = {}
        self._looking: set[asyncio.Task[None]] = set()
        self._left = AutoResetEvent()

    async def __aenter__(self) -> Slots:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for look in (*self._returning.values(), *self._looking):
            look.cancel()
        await self._group.__aexit__(exc_type, exc, traceback)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, uid: str) -> bool:
        return uid in self._slots

    @property
    def names(self) -> list[str]:
        return [str(slot.intake.task.ref) for slot in self._slots.values()]

    def free(self) -> int:
        """How many tasks could be taken now; none beside one that runs alone."""
        if any(quarantined(slot.intake.task) for slot in self._slots.values()):
            return 0
        return max(0, self._number - len(self._slots))

    def start(self, task: TaskView) -> None:
        """Puts a candidate into a slot of its own."""
        slot = _Slot(intake=Intake(self._context, self._runtimes, task))
        self._slots[task.uid] = slot
        slot.work = self._group.create_task(self._work(slot), name=f"task {task.ref}")

    def drain(self) -> None:
        """Every task comes to an end soon, without losing anything."""
        for slot in self._slots.values():
            slot.intake.drain()

    def abandon(self) -> None:
        """Gives up on effects that still run."""
        for slot in self._slots.values():
            slot.intake.abandon()

    def cancel(self) -> None:
        """Lets go of everything at once."""
        for slot in list(self._slots.values()):
            slot.work.cancel()

    async def emptied(self, seconds: float) -> bool:
        """Waits until no task is left in a slot; False if that takes longer."""
        try:
            async with asyncio.timeout(seconds):
                while self._slots:
                    await self._left.wait(None)
        except TimeoutError:
            return False
        return True

    def seen(self, manifest: Manifest) -> None:
        """A watch told a task that says it is this worker's."""
        task = task_view(manifest)
        slot = self._slots.get(task.uid)
        if slot is not None:
            slot.intake.seen(manifest)
        elif task.owned_by(self._context.owner):
            self._return(task)

    def gone(self, manifest: Manifest) -> None:
        """A watch told that a task is gone or another's. A look will show; it holds up nobody else."""
        slot = self._slots.get(manifest["metadata"]["uid"])
        if slot is not None:
            look = self._group.create_task(self._stopped_if_lost(slot))
            self._looking.add(look)
            look.add_done_callback(self._looking.discard)

    async def _work(self, slot: _Slot) -> None:
        task = slot.intake.task
        ended: Ended | None = None
        try:
            with contained("its run"):
                ended = await slot.intake.run()
        except AuraError as error:
            log.warning("not claimed, will try again", task=str(task.ref), error=str(error))
        except Exception as error:
            log.error("a fault of this operator; please report it", task=str(task.ref), exc_info=error)
        finally:
            # Before anything is awaited: from here on the task may be claimed again, and get another slot.
            del self._slots[task.uid]
            self._left.set()
            self._freed()
        self._afterwards(task, ended)

    def _afterwards(self, task: TaskView, ended: Ended | None) -> None:
        now = self._context.clock.boot()
        match ended:
            case None if ends_only(task, self._context.clock.now()):
                # It needs nothing of its agent, so what failed is its own.
                self._candidates.postpone(task, now + RETURN_RETRY_SECONDS)
            case None:
                self._candidates.trouble(task, now)
                self._candidates.postpone(task, now + RETRY_SECONDS)
            case Ended.NOT_YET:
                self._candidates.postpone(task, now + RETRY_SECONDS)
            case Ended.LEFT:
                self._candidates.leave(task)
            case Ended.DEFERRED:
                self._candidates.trouble(task, now)
            case Ended.DROPPED:
                self._candidates.trouble(task, now)
                self._return(task)
            case Ended.LOST:
                self._return(task)
            case Ended.FINISHED | Ended.PARKED | Ended.RELEASED:
                self._candidates.no_trouble(task)
            case Ended.NOT_CLAIMED:
                pass

    def _return(self, task: TaskView) -> None:
        """Releases a task that says it is ours and that we don't run: a claim whose answer came to nobody, a journal
        that somebody changed under us, which the next claim finds out, or one that could not be released before."""
        if task.uid not in self._returning:
            look = self._group.create_task(self._returned(task))
            self._returning[task.uid] = look
            look.add_done_callback(lambda _: self._returning.pop(task.uid, None))

    async def _returned(self, task: TaskView) -> None:
        why = "handed back; wants a worker"
        while True:
            try:
                await hand_back(self._context, task, why, unless=lambda: task.uid in self._slots)
            except AuraError as error:
                # It costs no slot, so there is no end to trying: rights that come back should find nothing left over.
                log.warning("still not handed back", task=str(task.ref), error=str(error))
                await self._context.clock.sleep(RETURN_RETRY_SECONDS)
            else:
                return

    async def _stopped_if_lost(self, slot: _Slot) -> None:
        task = slot.intake.task
        try:
            if not self._lost(slot, task_view(await self._context.store.get(task.ref))):
                return
        except NotFoundError:
            pass
        except (StoreError, UnreadableObjectError) as error:
            log.warning("can't tell whether a task is still ours", task=str(task.ref), error=str(error))
            return
        if self._slots.get(task.uid) is slot:
            log.warning("task deleted or taken over; stopping it", task=str(task.ref))
            slot.work.cancel()

    def _lost(self, slot: _Slot, found: TaskView) -> bool:
        """Whether the task was taken away, by what a fresh read shows. That it isn't ours any more doesn't say so: its
        run may have just given it up by itself, and be on its way out of the slot."""
        if found.uid != slot.intake.task.uid:
            return True
        if found.owned_by(self._context.owner):
            return False
        if found.epoch != slot.intake.epoch:
            return True
        orphaned = found.last_end is not None and found.last_end.epoch == found.epoch and found.last_end.proof.is_death
        return orphaned and not found.phase.terminal
