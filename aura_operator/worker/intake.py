"""One task's way through a slot: from candidate through its claim to a runner, as far as it goes.

Owns what is done at each stage when a person cancels the task, when this worker drains, and when what the task needs
can't be had. The claim itself is not here (see claiming.py), nor the run (see runner.py).
"""

from __future__ import annotations

from contextlib import AsyncExitStack

import structlog

from aura_operator.core.decide import DEADLINE_PASSED
from aura_operator.core.entries import Claimed
from aura_operator.core.instants import from_text
from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.errors import AuraError, ConfigurationError, NotFoundError, RefusedError, StoreError
from aura_operator.foreign import contained
from aura_operator.store.resources import Manifest
from aura_operator.store.task_fields import CANNOT_RUN_NOW
from aura_operator.store.view import TaskView, task_view
from aura_operator.worker.candidates import ends_only
from aura_operator.worker.claiming import claim_entry, claimed
from aura_operator.worker.clocks import clock_lead_seconds
from aura_operator.worker.runtime.agent_runtime import AgentRuntime, RuntimeSource
from aura_operator.worker.runtime.revision import pin
from aura_operator.worker.task.ending import Ended, end, fail, hand_back
from aura_operator.worker.task.interruption import Interrupted, Interruption, Reason
from aura_operator.worker.task.live import Ahead, LiveTask, WorkerContext
from aura_operator.worker.task.opening import Look, look, woken_by_people
from aura_operator.worker.task.recall import Recalled, recall
from aura_operator.worker.task.runner import Runner

log = structlog.get_logger()

AGENT_GRACE_SECONDS = 10.0  # a task may be applied before its agent


class Intake:
    """A task that has a slot. `task` is as the candidate was seen; `epoch` is that of its claim, 0 before."""

    def __init__(self, context: WorkerContext, runtimes: RuntimeSource, task: TaskView) -> None:
        self.task = task
        self.epoch = 0
        self._context = context
        self._runtimes = runtimes
        self._runner: Runner | None = None
        self._newest: Manifest | None = None  # of what was told before there was a runner
        self._interruption = Interruption()

    def seen(self, manifest: Manifest) -> None:
        """Takes in the object as a watch told it, once it is this worker's."""
        if self._runner is not None:
            self._runner.seen(manifest)
            return
        self._newest = manifest
        task = task_view(manifest)
        if task.desired is Desired.CANCEL or task.deleting:
            self._interruption.ask(Reason.CANCEL)

    def drain(self) -> None:
        """Comes to an end soon without losing anything."""
        if self._runner is not None:
            self._runner.drain()
        else:
            self._interruption.ask(Reason.DRAIN)

    def abandon(self) -> None:
        """Gives up on effects that still run."""
        if self._runner is not None:
            self._runner.abandon()

    async def run(self) -> Ended:
        """Goes as far as it goes. Raises AuraError where nothing was claimed, and could be some other time."""
        async with AsyncExitStack() as held:
            try:
                async with self._interruption.heard():
                    revision, missing = await self._revision()
                    if missing is not None and self._agent_may_come():
                        return Ended.NOT_YET
                    entry = claim_entry(self._context, self.task, revision)
                    runtime, seen = await self._look(entry, held)
            except Interrupted:
                return Ended.NOT_CLAIMED
            mine = await claimed(self._context, self.task, entry, seen.opening)
            if mine is None:
                return Ended.NOT_CLAIMED
            self.epoch = mine.epoch
            # From here on the task is this worker's: whatever fails, it isn't claimed as if it had never been.
            try:
                with contained("its run"):
                    if runtime is not None and seen.opening is not None:
                        return await self._run(self._live(mine, seen.opening.recalled, runtime, seen.ahead))
                    return await self._with(mine, revision, seen.ahead, missing, held)
            except AuraError as error:
                return self._dropped(error)
            except Exception as error:
                log.error("a fault of this operator; please report it", task=str(self.task.ref), exc_info=error)
                try:
                    return await fail(self._context, mine, error)
                except AuraError as refused:
                    return self._dropped(refused)

    async def _look(self, entry: Claimed, held: AsyncExitStack) -> tuple[AgentRuntime | None, Look]:
        """What a task that people have woken goes on with, and what that runs with."""
        task = self.task
        if not task.revision or not woken_by_people(task) or ends_only(task, self._context.clock.now()):
            return None, Look()
        if _unsupported(task) is not None:
            return None, Look()
        try:
            runtime = await held.enter_async_context(self._runtimes.use(task.ref.namespace, task.revision))
        except AuraError:
            return None, Look()  # it is met again after the claim, and told there
        if runtime.spec.unsupported() is not None:
            return None, Look()
        return runtime, await look(self._context, runtime, task, entry)

    def _dropped(self, error: AuraError) -> Ended:
        log.warning("given up, since nothing can be written", task=str(self.task.ref), error=str(error))
        return Ended.DROPPED

    async def _revision(self) -> tuple[str, ConfigurationError | None]:
        """The revision that the task has or, before its first claim, gets; or why there is none."""
        context, task = self._context, self.task
        if task.revision or ends_only(task, context.clock.now()):
            return task.revision, None
        try:
            return await pin(context.store, task.ref.namespace, task.agent, context.clock), None
        except NotFoundError:
            message = f"AuraAgent {task.ref.namespace}/{task.agent} doesn't exist; create it, then run the task again"
            return "", ConfigurationError(message, reason="AgentNotFound")

    def _agent_may_come(self) -> bool:
        age = self._context.clock.now() - from_text(self.task.manifest["metadata"]["creationTimestamp"])
        return age < AGENT_GRACE_SECONDS

    async def _with(
        self,
        mine: TaskView,
        revision: str,
        ahead: Ahead,
        missing: ConfigurationError | None,
        held: AsyncExitStack,
    ) -> Ended:
        """What is done with a task in this worker's hands."""
        context = self._context
        if self.task.desired is Desired.CANCEL:
            return await self._cancelled(mine)
        if ends_only(self.task, context.clock.now()):
            return await end(context, mine, Phase.FAILED, "DeadlineExceeded", DEADLINE_PASSED)
        problem = missing or _unsupported(mine)
        if problem is not None:
            return await fail(context, mine, problem)
        try:
            async with self._interruption.heard():
                runtime = await held.enter_async_context(self._runtimes.use(mine.ref.namespace, revision))
                lacking = runtime.spec.unsupported()
                if lacking is not None:
                    raise ConfigurationError(lacking, reason="Unsupported")
                live = self._live(mine, await recall(context.store, context.clock, mine), runtime, ahead)
        except Interrupted as interrupted:
            if interrupted.reason is Reason.CANCEL:
                return await self._cancelled(mine)
            return await hand_back(context, mine, "handed over; wants a worker")
        except (StoreError, RefusedError) as error:
            # It may pass, and is no fault of the task's: it waits, without a slot.
            ended = await hand_back(context, mine, f"{CANNOT_RUN_NOW}{error}")
            return Ended.DEFERRED if ended is Ended.RELEASED else ended
        except AuraError as error:
            return await fail(context, mine, error)
        return await self._run(live)

    def _live(self, mine: TaskView, recalled: Recalled, runtime: AgentRuntime, ahead: Ahead) -> LiveTask:
        seconds = clock_lead_seconds(self.task, self._context.clock.now())
        return LiveTask(self._context, mine, recalled, runtime, ahead, clock_lead_seconds=seconds)

    async def _run(self, live: LiveTask) -> Ended:
        self._runner = Runner(live)
        if self._newest is not None:
            self._runner.seen(self._newest)
        if self._interruption.asked is Reason.DRAIN:
            self._runner.drain()
        return await self._runner.run()

    async def _cancelled(self, mine: TaskView) -> Ended:
        return await end(self._context, mine, Phase.CANCELLED, "Cancelled", "spec.desired is Cancel")


def _unsupported(task: TaskView) -> ConfigurationError | None:
    if task.session is None:
        return None
    return ConfigurationError("this version runs no sessions; leave spec.sessionRef out", reason="Unsupported")
