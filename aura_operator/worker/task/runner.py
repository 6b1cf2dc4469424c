"""Runs one task from its claim until it is parked, finished, released or lost.

Owns the loop: absorb what the world says, decide what is wanted, start and stop accordingly, wait. The rules are
core's; the performing is performing.py's, asking people is approval_requests.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from aura_operator.core.absorb import absorb
from aura_operator.core.commands import Await, Wanted, Work
from aura_operator.core.decide import begun, decide
from aura_operator.core.entries import Control, Finished
from aura_operator.errors import AuraError, FencedError, NotFoundError, first_cause
from aura_operator.store.resources import Manifest
from aura_operator.store.task_fields import Wait
from aura_operator.store.task_writes import finish, park, release
from aura_operator.worker.task import approval_requests, performing, reporting
from aura_operator.worker.task.approval_content import deciders_in_words
from aura_operator.worker.task.calls import Stop
from aura_operator.worker.task.ending import Ended, announce, fail
from aura_operator.worker.task.live import LiveTask
from aura_operator.worker.task.results import result_of

HOLD_SECONDS = 2.0  # a timer this near isn't worth giving the task up and claiming it again


@dataclass(slots=True, kw_only=True)
class _Running:
    task: asyncio.Task[None]
    keeps_outcome: bool = False
    stop: Stop = field(default_factory=Stop)

    def end(self) -> None:
        """Cancels it once: a second time would cut short how it tidies up."""
        if not self.task.cancelling():
            self.task.cancel()


class Runner:
    """One task's loop. `drain` makes it come to an end soon without losing anything."""

    def __init__(self, live: LiveTask) -> None:
        self._live = live
        self._work: dict[str, _Running] = {}
        self._asking: dict[str, _Running] = {}  # people, while other work goes on
        self._draining = False

    def drain(self) -> None:
        """Starts nothing new; model calls and plain reads are abandoned, running effects awaited; then releases."""
        self._draining = True
        self._live.wake.set()

    def abandon(self) -> None:
        """Gives up on effects that still run at the end of the grace period; whoever goes on finds them in doubt."""
        self.drain()
        self._cancel_all()

    def seen(self, manifest: Manifest) -> None:
        """Takes in the task's object as a watch told it."""
        self._live.seen(manifest)

    async def run(self) -> Ended:
        """Runs the task as far as it goes now. Never raises for what a task, a model, a tool or a user did."""
        live = self._live
        try:
            return await self._guarded()
        except* (FencedError, NotFoundError) as group:
            live.log.warning("task lost", error=str(first_cause(group)))
            failed: Exception | None = None
        except* AuraError as group:
            failed = first_cause(group)
        except* Exception as group:
            failed = first_cause(group)
            live.log.error("a fault of this operator; please report it", exc_info=failed)
        return Ended.LOST if failed is None else await fail(live.context, live.task, failed)

    async def _guarded(self) -> Ended:
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._live.writer.run())
            ended = await self._loop(group)
            writer.cancel()
            self._cancel_all()
        return ended

    async def _loop(self, group: asyncio.TaskGroup) -> Ended:
        live = self._live
        opened = begun(live.state)
        if opened:  # with the claim; each takes its first step, and has an outcome from then on
            self._start_work(opened, group)
            await asyncio.sleep(0)
        while True:
            while entries := absorb(live.state, live.world()):
                for entry in entries:
                    live.record(entry)
            wanted = decide(live.state, live.runtime.limits, live.now())
            if wanted.ending is not None:
                return await self._finish(wanted.ending)
            if wanted.notes and not self._draining:
                for note in wanted.notes:
                    live.record(note)
                continue
            self._stop_unwanted(wanted)
            if self._draining:
                if not self._work:
                    return await self._release()
                await live.wake.wait(None)
                continue
            self._start(wanted, group)
            if wanted.waits and not wanted.work and not self._work:
                ended = await self._park(wanted.waits)
                if ended is not None:
                    return ended
                continue
            await live.wake.wait(self._until_next(wanted.waits))

    def _start(self, wanted: Wanted, group: asyncio.TaskGroup) -> None:
        self._start_work(wanted.work, group)
        for wait in wanted.waits:
            if wait.kind.of_people and wait.id not in self._asking:
                asking = _Running(task=group.create_task(approval_requests.perform(self._live, wait), name=wait.id))
                self._keep(wait.id, asking, self._asking)

    def _start_work(self, wanted: Sequence[Work], group: asyncio.TaskGroup) -> None:
        for work in wanted:
            if work.id not in self._work:
                stop = Stop()
                task = group.create_task(performing.perform(self._live, work, stop), name=work.id)
                running = _Running(task=task, keeps_outcome=work.keeps_outcome, stop=stop)
                self._keep(work.id, running, self._work)

    def _keep(self, name: str, running: _Running, among: dict[str, _Running]) -> None:
        among[name] = running
        # Not in the coroutine's own `finally`: one that is cancelled before its first step never comes there.
        running.task.add_done_callback(partial(self._ended, name, among))

    def _ended(self, name: str, among: dict[str, _Running], _: asyncio.Task[None]) -> None:
        among.pop(name, None)
        self._live.wake.set()

    def _stop_unwanted(self, wanted: Wanted) -> None:
        """Stops what runs and isn't wanted. A call with an intent is asked to stop, and what came of it is recorded."""
        work = {item.id for item in wanted.work}
        for name, running in list(self._work.items()):
            if running.keeps_outcome:
                if name not in work and not running.stop.asked:
                    running.stop.asked = True
                    running.task.cancel()
            elif name not in work or self._draining:
                running.end()
        waits = {wait.id for wait in wanted.waits}
        for name, asking in list(self._asking.items()):
            if name not in waits or self._draining:
                asking.end()

    def _cancel_all(self) -> None:
        for running in [*self._work.values(), *self._asking.values()]:
            running.task.cancel()

    def _until_next(self, waits: Sequence[Await]) -> float | None:
        """Seconds until something happens by itself: a timer, or the task's deadline."""
        live = self._live
        times = [wait.until for wait in waits if wait.kind.by_clock and wait.until is not None]
        if live.task.deadline is not None and live.state.control not in (Control.CANCEL, Control.EXPIRED):
            times.append(live.task.deadline)
        return max(0.0, min(times) - live.now()) if times else None

    async def _park(self, waits: Sequence[Await]) -> Ended | None:
        """Gives the task up until one of `waits` comes; None if it should go on instead."""
        live = self._live
        soon = self._until_next(waits)
        timers_only = all(wait.kind.by_clock for wait in waits)
        if timers_only and soon is not None and soon <= HOLD_SECONDS:
            await live.wake.wait(soon)
            return None
        for wait in waits:
            if not wait.kind.of_people:
                continue
            if wait.name not in live.asked:  # the one who asks rings when the approval is there
                await live.wake.wait(soon)
                return None
            if await approval_requests.has_ended(live, wait):
                return None
            if live.about_to_be_settled(wait.name):
                await live.wake.wait(approval_requests.POLL_SECONDS)  # the one who asks looks again and again
                return None
        await live.writer.barrier()
        if self._draining or absorb(live.state, live.world()):
            return None
        now = live.now()
        deciders = partial(deciders_in_words, live)
        await live.writer.close(
            partial(
                park,
                waiting_for=[Wait(kind=wait.kind, name=wait.name, until=wait.until) for wait in waits],
                fired=live.task.fired,
                now=now,
                fields=reporting.parked(live.state, waits, task=live.task.manifest, deciders=deciders, now=now),
            )
        )
        live.log.info("parked", waits=[wait.name for wait in waits])
        return Ended.PARKED

    async def _release(self) -> Ended:
        live = self._live
        await live.writer.barrier()
        fields = reporting.left("handed over; wants a worker")
        await live.writer.close(partial(release, now=live.now(), fields=fields))
        live.log.info("released")
        return Ended.RELEASED

    async def _finish(self, ending: Finished) -> Ended:
        live = self._live
        self._cancel_all()
        result, objects = result_of(live, ending)
        live.record(ending, objects)
        fields = reporting.finished(live.state, ending, task=live.task.manifest)
        await live.writer.close(partial(finish, phase=ending.phase, result=result, now=ending.at, fields=fields))
        live.log.info("finished", phase=ending.phase.value, reason=ending.reason)
        await announce(live.context, live.task.manifest, ending)
        return Ended.FINISHED
