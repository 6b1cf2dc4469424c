"""Runs one task from its claim until it is parked, finished, released or lost.

Owns the loop: absorb what the world says, decide what is wanted, start and stop accordingly, wait. The rules are
core's, the performing is models.py's, calls.py's and asking.py's.
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
from aura_operator.store.contract import finish, park, release
from aura_operator.store.resources import Manifest
from aura_operator.store.view import Wait
from aura_operator.worker import asking, calls, models, reporting
from aura_operator.worker.ending import Ended, announce, fail
from aura_operator.worker.results import result_of
from aura_operator.worker.taskrun import TaskRun

HOLD_SECONDS = 2.0  # a timer this near isn't worth giving the task up and claiming it again


@dataclass(slots=True, kw_only=True)
class _Running:
    task: asyncio.Task[None]
    command: Command
    stop: calls.Stop = field(default_factory=calls.Stop)


class Runner:
    """One task's loop. `drain` makes it come to an end soon without losing anything."""

    def __init__(self, run: TaskRun) -> None:
        self._run = run
        self._running: dict[str, _Running] = {}
        self._draining = False

    def drain(self) -> None:
        """Starts nothing new; model calls and plain reads are abandoned, running effects awaited; then releases."""
        self._draining = True
        self._run.wake.set()

    def abandon(self) -> None:
        """Gives up on effects that still run at the end of the grace period; whoever goes on finds them in doubt."""
        self.drain()
        for running in self._running.values():
            running.task.cancel()

    def seen(self, manifest: Manifest) -> None:
        """Takes in the task's object as a watch told it."""
        self._run.seen(manifest)

    async def run(self) -> Ended:
        """Runs the task as far as it goes now. Never raises for what a task, a model, a tool or a user did."""
        run = self._run
        try:
            return await self._guarded()
        except* (FencedError, NotFoundError) as group:
            run.log.warning("task lost", error=str(_first(group)))
            failed: Exception | None = None
        except* AuraError as group:
            failed = _first(group)
        except* Exception as group:
            failed = _first(group)
            run.log.error("a fault of this operator; please report it", exc_info=failed)
        return Ended.LOST if failed is None else await fail(run.means, run.task, failed)

    async def _guarded(self) -> Ended:
        async with asyncio.TaskGroup() as group:
            writer = group.create_task(self._run.writer.run())
            ended = await self._loop(group)
            writer.cancel()
            for running in self._running.values():
                running.task.cancel()
        return ended

    async def _loop(self, group: asyncio.TaskGroup) -> Ended:
        run = self._run
        while True:
            while entries := absorb(run.state, run.world()):
                for entry in entries:
                    run.record(entry)
            wanted = decide(run.state, run.equipment.limits, run.now())
            if await self._write_down(wanted):
                continue
            for command in wanted:
                if isinstance(command, Finish):
                    return await self._finish(command)
            self._stop_unwanted(wanted)
            if self._draining:
                if not self._busy():
                    return await self._release()
                await run.wake.wait(None)
                continue
            self._start(wanted, group)
            waits = [command for command in wanted if isinstance(command, Await)]
            if waits and len(waits) == len(wanted) and not self._busy():
                ended = await self._park(waits)
                if ended is not None:
                    return ended
                continue
            await run.wake.wait(self._until_next(waits))

    async def _write_down(self, wanted: list[Command]) -> bool:
        """Records what needs nothing but being recorded; True if there was something."""
        at_once_wanted = [command for command in wanted if isinstance(command, Ask | TellInDoubt)]
        if self._draining:
            return False
        for command in at_once_wanted:
            entry = at_once(
                command,
                now=self._run.now(),
                expires_after_seconds=self._run.equipment.spec.approvals.expires_after_seconds,
                schema=await self._schema(command),
            )
            self._run.record(entry)
        return bool(at_once_wanted)

    async def _schema(self, command: Ask | TellInDoubt) -> str:
        """The digest of the schema that the person will see: the plan's at first, the present one when asked again."""
        if isinstance(command, TellInDoubt) or command.kind is RequestKind.IN_DOUBT:
            return ""
        plan = self._run.state.call(command.call).plan
        if command.ask == 0:
            return plan.schema
        spec = (await self._run.equipment.tools()).get(plan.tool)
        return spec.schema_digest if spec is not None else plan.schema

    def _start(self, wanted: list[Command], group: asyncio.TaskGroup) -> None:
        for command in wanted:
            if command.id in self._running:
                continue
            stop = calls.Stop()
            work: Coroutine[None, None, None]
            match command:
                case CallModel():
                    work = models.perform(self._run, command)
                case CallTool():
                    work = calls.perform(self._run, command, stop)
                case Await(kind=WaitKind.APPROVAL):
                    work = asking.perform(self._run, command)
                case _:
                    continue
            task = group.create_task(work, name=command.id)
            self._running[command.id] = _Running(task=task, command=command, stop=stop)
            # Not in the coroutine's own `finally`: one that is cancelled before its first step never comes there.
            task.add_done_callback(partial(self._ended, command.id))

    def _ended(self, command_id: str, _: asyncio.Task[None]) -> None:
        self._running.pop(command_id, None)
        self._run.wake.set()

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
        return self._run.state.call(command.call).plan.needs_intent

    def _busy(self) -> bool:
        return any(not isinstance(running.command, Await) for running in self._running.values())

    def _until_next(self, waits: list[Await]) -> float | None:
        """Seconds until something happens by itself: a timer, or the task's deadline."""
        run = self._run
        times = [wait.until for wait in waits if wait.kind is WaitKind.TIMER and wait.until is not None]
        if run.task.deadline is not None:
            times.append(run.task.deadline)
        return max(0.0, min(times) - run.now()) if times else None

    async def _park(self, waits: list[Await]) -> Ended | None:
        """Gives the task up until one of `waits` comes; None if it should go on instead."""
        run = self._run
        soon = self._until_next(waits)
        timers_only = all(wait.kind is WaitKind.TIMER for wait in waits)
        if timers_only and soon is not None and soon <= HOLD_SECONDS:
            await run.wake.wait(soon)
            return None
        for wait in waits:
            if wait.kind is WaitKind.APPROVAL and asking.note(run, wait, await asking.asked(run, wait)):
                return None
        await run.writer.barrier()
        if self._draining or absorb(run.state, run.world()):
            return None
        now = run.now()
        waiting_for = [Wait(kind=wait.kind, name=wait.name, until=wait.until) for wait in waits]
        fields = reporting.parked(
            run.state, waits, task=run.task.manifest, approvers=asking.approvers_in_words(run), now=now
        )
        fired = run.task.fired
        await run.writer.close(
            lambda holding, growth: park(holding, growth, waiting_for=waiting_for, fired=fired, now=now, extras=fields)
        )
        run.log.info("parked", waits=[wait.name for wait in waits])
        return Ended.PARKED

    async def _release(self) -> Ended:
        run = self._run
        await run.writer.barrier()
        now = run.now()
        fields = {"summary": "handed over; wants a worker"}
        await run.writer.close(lambda holding, _: release(holding, now=now, extras=fields))
        run.log.info("released")
        return Ended.RELEASED

    async def _finish(self, command: Finish) -> Ended:
        run = self._run
        for running in list(self._running.values()):
            running.task.cancel()
        result, objects = result_of(run, command)
        entry = last_entry(command, now=run.now())
        run.writer.record(encode(entry), objects)
        run.state = apply(run.state, entry)
        fields = reporting.finished(run.state, entry, task=run.task.manifest)
        await run.writer.close(
            lambda holding, growth: finish(
                holding, growth, phase=entry.phase, result=result, now=entry.at, extras=fields
            )
        )
        run.log.info("finished", phase=entry.phase.value, reason=entry.reason)
        await announce(run.means, run.task.manifest, entry)
        return Ended.FINISHED


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, Exception)
    return error
