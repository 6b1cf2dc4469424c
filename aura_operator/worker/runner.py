"""Runs one task from its claim until it is parked, finished, released or lost.

Owns the loop: absorb what the world says, decide what is wanted, start and stop accordingly, wait. The rules are
core's, the performing is models.py's, calls.py's and approval_requests.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from functools import partial

from aura_operator.core.absorb import absorb
from aura_operator.core.codec import encode
from aura_operator.core.commands import Ask, Await, CallModel, CallTool, Command, Finish, TellInDoubt
from aura_operator.core.decide import at_once, decide, last_entry
from aura_operator.core.entries import RequestKind
from aura_operator.core.fold import apply
from aura_operator.core.lifecycle import WaitKind
from aura_operator.errors import AuraError, FencedError, NotFoundError
from aura_operator.store.resources import Manifest
from aura_operator.store.task_writes import finish, park, release
from aura_operator.store.view import Wait
from aura_operator.worker import approval_requests, calls, models, reporting
from aura_operator.worker.ending import Ended, announce, fail
from aura_operator.worker.live import LiveTask
from aura_operator.worker.results import result_of

HOLD_SECONDS = 2.0  # a timer this near isn't worth giving the task up and claiming it again


@dataclass(slots=True, kw_only=True)
class _Running:
    task: asyncio.Task[None]
    command: Command
    stop: calls.Stop = field(default_factory=calls.Stop)


class Runner:
    """One task's loop. `drain` makes it come to an end soon without losing anything."""

    def __init__(self, live: LiveTask) -> None:
        self._live = live
        self._running: dict[str, _Running] = {}
        self._draining = False

    def drain(self) -> None:
        """Starts nothing new; model calls and plain reads are abandoned, running effects awaited; then releases."""
        self._draining = True
        self._live.wake.set()

    def abandon(self) -> None:
        """Gives up on effects that still run at the end of the grace period; whoever goes on finds them in doubt."""
        self.drain()
        for running in self._running.values():
            running.task.cancel()

    def seen(self, manifest: Manifest) -> None:
        """Takes in the task's object as a watch told it."""
        self._live.seen(manifest)

    async def run(self) -> Ended:
        """Runs the task as far as it goes now. Never raises for what a task, a model, a tool or a user did."""
        live = self._live
        try:
            return await self._guarded()
        except* (FencedError, NotFoundError) as group:
            live.log.warning("task lost", error=str(_first(group)))
            failed: Exception | None = None
        except* AuraError as group:
            failed = _first(group)
        except* Exception as group:
            failed = _first(group)
            live.log.error("a fault of this operator; please report it", exc_info=failed)
        return Ended.LOST if failed is None else await fail(live.context, live.task, failed)

    async def _guarded(self) -> Ended:
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._live.writer.run())
            ended = await self._loop(group)
            writer.cancel()
            for running in self._running.values():
                running.task.cancel()
        return ended

    async def _loop(self, group: asyncio.TaskGroup) -> Ended:
        live = self._live
        while True:
            while entries := absorb(live.state, live.world()):
                for entry in entries:
                    live.record(entry)
            wanted = decide(live.state, live.runtime.limits, live.now())
            if await self._write_down(wanted):
                continue
            for command in wanted:
                if isinstance(command, Finish):
                    return await self._finish(command)
            self._stop_unwanted(wanted)
            if self._draining:
                if not self._busy():
                    return await self._release()
                await live.wake.wait(None)
                continue
            self._start(wanted, group)
            waits = [command for command in wanted if isinstance(command, Await)]
            if waits and len(waits) == len(wanted) and not self._busy():
                ended = await self._park(waits)
                if ended is not None:
                    return ended
                continue
            await live.wake.wait(self._until_next(waits))

    async def _write_down(self, wanted: list[Command]) -> bool:
        """Records what needs nothing but being recorded; True if there was something."""
        at_once_wanted = [command for command in wanted if isinstance(command, Ask | TellInDoubt)]
        if self._draining:
            return False
        for command in at_once_wanted:
            entry = at_once(
                command,
                now=self._live.now(),
                expires_after_seconds=self._live.runtime.spec.approvals.expires_after_seconds,
                schema=await self._schema(command),
            )
            self._live.record(entry)
        return bool(at_once_wanted)

    async def _schema(self, command: Ask | TellInDoubt) -> str:
        """The digest of the schema that the person will see: the plan's at first, the present one when asked again."""
        if isinstance(command, TellInDoubt) or command.kind is RequestKind.IN_DOUBT:
            return ""
        plan = self._live.state.call(command.call).plan
        if command.ask == 0:
            return plan.schema
        spec = (await self._live.runtime.tools()).get(plan.tool)
        return spec.schema_digest if spec is not None else plan.schema

    def _start(self, wanted: list[Command], group: asyncio.TaskGroup) -> None:
        for command in wanted:
            if command.id in self._running:
                continue
            stop = calls.Stop()
            work: Coroutine[None, None, None]
            match command:
                case CallModel():
                    work = models.perform(self._live, command)
                case CallTool():
                    work = calls.perform(self._live, command, stop)
                case Await(kind=WaitKind.APPROVAL):
                    work = approval_requests.perform(self._live, command)
                case _:
                    continue
            task = group.create_task(work, name=command.id)
            self._running[command.id] = _Running(task=task, command=command, stop=stop)
            # Not in the coroutine's own `finally`: one that is cancelled before its first step never comes there.
            task.add_done_callback(partial(self._ended, command.id))

    def _ended(self, command_id: str, _: asyncio.Task[None]) -> None:
        self._running.pop(command_id, None)
        self._live.wake.set()

    def _stop_unwanted(self, wanted: list[Command]) -> None:
        """Stops what runs and isn't wanted. A call with an intent is asked to stop, and what came of it is recorded."""
        ids = {command.id for command in wanted}
        for command_id, running in list(self._running.items()):
            if isinstance(running.command, CallTool) and self._has_intent(running.command):
                if command_id not in ids and not running.stop.asked:
                    running.stop.asked = True
                    running.task.cancel()
            elif command_id not in ids or self._draining:
                running.task.cancel()

    def _has_intent(self, command: CallTool) -> bool:
        return self._live.state.call(command.call).plan.needs_intent

    def _busy(self) -> bool:
        return any(not isinstance(running.command, Await) for running in self._running.values())

    def _until_next(self, waits: list[Await]) -> float | None:
        """Seconds until something happens by itself: a timer, or the task's deadline."""
        live = self._live
        times = [wait.until for wait in waits if wait.kind is WaitKind.TIMER and wait.until is not None]
        if live.task.deadline is not None:
            times.append(live.task.deadline)
        return max(0.0, min(times) - live.now()) if times else None

    async def _park(self, waits: list[Await]) -> Ended | None:
        """Gives the task up until one of `waits` comes; None if it should go on instead."""
        live = self._live
        soon = self._until_next(waits)
        timers_only = all(wait.kind is WaitKind.TIMER for wait in waits)
        if timers_only and soon is not None and soon <= HOLD_SECONDS:
            await live.wake.wait(soon)
            return None
        for wait in waits:
            if wait.kind is WaitKind.APPROVAL and approval_requests.note(
                live, wait, await approval_requests.asked(live, wait)
            ):
                return None
        await live.writer.barrier()
        if self._draining or absorb(live.state, live.world()):
            return None
        now = live.now()
        waiting_for = [Wait(kind=wait.kind, name=wait.name, until=wait.until) for wait in waits]
        fields = reporting.parked(
            live.state, waits, task=live.task.manifest, approvers=approval_requests.approvers_in_words(live), now=now
        )
        fired = live.task.fired
        await live.writer.close(
            lambda owned, delta: park(owned, delta, waiting_for=waiting_for, fired=fired, now=now, fields=fields)
        )
        live.log.info("parked", waits=[wait.name for wait in waits])
        return Ended.PARKED

    async def _release(self) -> Ended:
        live = self._live
        await live.writer.barrier()
        now = live.now()
        fields = {"summary": "handed over; wants a worker"}
        await live.writer.close(lambda owned, _: release(owned, now=now, fields=fields))
        live.log.info("released")
        return Ended.RELEASED

    async def _finish(self, command: Finish) -> Ended:
        live = self._live
        for running in list(self._running.values()):
            running.task.cancel()
        result, objects = result_of(live, command)
        entry = last_entry(command, now=live.now())
        live.writer.record(encode(entry), objects)
        live.state = apply(live.state, entry)
        fields = reporting.finished(live.state, entry, task=live.task.manifest)
        await live.writer.close(
            lambda owned, delta: finish(owned, delta, phase=entry.phase, result=result, now=entry.at, fields=fields)
        )
        live.log.info("finished", phase=entry.phase.value, reason=entry.reason)
        await announce(live.context, live.task.manifest, entry)
        return Ended.FINISHED


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error
