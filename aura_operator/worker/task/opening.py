"""Opens a task that a decision has woken: its claim, the decision and the intent of the call go out in one write.

After a decision every millisecond is a person's (docs/adr/0021). Owns what is read before such a claim, and what is
written with it. Nothing depends on it: what isn't as expected, or isn't here soon, is done after the claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import structlog

from aura_operator.agent.specs import ToolSpec
from aura_operator.core.absorb import World, absorb
from aura_operator.core.approvals import Decision
from aura_operator.core.calls import CallState
from aura_operator.core.commands import CallTool
from aura_operator.core.decide import decide
from aura_operator.core.entries import Claimed, Decided, Entry, Intent
from aura_operator.core.fold import apply
from aura_operator.core.lifecycle import Desired
from aura_operator.core.names import approval_name
from aura_operator.core.state import TaskState
from aura_operator.errors import StoreError
from aura_operator.foreign import contained
from aura_operator.store.approvals import PENDING, approval_ref, approval_view
from aura_operator.store.resources import Manifest
from aura_operator.store.view import TaskView
from aura_operator.worker.clocks import clock_lead_seconds
from aura_operator.worker.runtime.agent_runtime import AgentRuntime
from aura_operator.worker.task.approval_requests import SETTLING_SECONDS, decision_on
from aura_operator.worker.task.calls import intent_of
from aura_operator.worker.task.live import Ahead, WorkerContext
from aura_operator.worker.task.recall import Recalled, recall

log = structlog.get_logger()

LOOK_SECONDS = 0.25  # what takes longer is read after the claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """`entries` follow the claim's own; `recalled` is the task as it is after them."""

    entries: tuple[Entry, ...]
    recalled: Recalled


@dataclass(slots=True, kw_only=True)
class Look:
    """What was read before a claim, as far as it came. `opening` is there if nothing else stands before the calls."""

    approvals: dict[str, Manifest] = field(default_factory=dict)
    tools: dict[str, ToolSpec | None] = field(default_factory=dict)
    listed_at: float = 0.0
    opening: Opening | None = None

    @property
    def ahead(self) -> Ahead:
        return Ahead(approvals=self.approvals, tools=self.tools, listed_at=self.listed_at)


def woken_by_people(task: TaskView) -> bool:
    """Whether a decision is what the task goes on with."""
    people = {wait.name for wait in task.waiting_for if wait.kind.of_people}
    return task.desired is Desired.RUN and not task.deleting and not people.isdisjoint(task.fired)


async def look(context: WorkerContext, runtime: AgentRuntime, task: TaskView, claim: Claimed) -> Look:
    """Reads what the task goes on with once it is claimed. Raises nothing."""
    found = Look(listed_at=context.clock.boot())
    try:
        with contained("looking ahead"):
            async with asyncio.timeout(LOOK_SECONDS):
                recalled = await recall(context.store, context.clock, task)
                state = apply(recalled.state, claim)
                await _list_tools(runtime, task, state, found.tools)
                # Last: the controller settles an approval while the task wakes.
                await _read_approvals(context, task, found.approvals)
                found.opening = _opening(context, runtime, task, state, found, recalled)
    except Exception as error:  # noqa: BLE001 - also foreign code, and an object of a newer version
        log.debug("not all was read before the claim", task=str(task.ref), error=repr(error))
    return found


async def _read_approvals(context: WorkerContext, task: TaskView, found: dict[str, Manifest]) -> None:
    async def read(name: str) -> None:
        try:
            found[name] = await context.store.get(approval_ref(task.ref.namespace, name))
            while name in task.fired and approval_view(found[name]).phase == PENDING:
                await context.clock.sleep(SETTLING_SECONDS)
                found[name] = await context.store.get(approval_ref(task.ref.namespace, name))
        except StoreError as error:
            log.debug("approval not read before the claim", approval=name, error=str(error))

    await asyncio.gather(*(read(wait.name) for wait in task.waiting_for if wait.kind.of_people))


async def _list_tools(
    runtime: AgentRuntime, task: TaskView, state: TaskState, listed: dict[str, ToolSpec | None]
) -> None:
    """The tools of the calls that people have decided about, as their servers list them now."""
    known = await runtime.tools()
    for call in state.open_calls:
        if _name_of(task, call) in task.fired and call.plan.tool in known:
            listed[call.plan.tool] = await runtime.toolbox.fresh(call.plan.tool)


def _name_of(task: TaskView, call: CallState) -> str | None:
    return None if call.requested is None else approval_name(task.ref.name, call.plan.call, call.requested.ask)


def _opening(
    context: WorkerContext, runtime: AgentRuntime, task: TaskView, state: TaskState, found: Look, recalled: Recalled
) -> Opening | None:
    """None where anything but approved calls comes next: that takes its ordinary way."""
    wall = context.clock.now()
    now = wall + clock_lead_seconds(task, wall)
    decided = absorb(
        state,
        World(
            now=now,
            steering=task.steering,
            decisions=_decisions(task, state, found.approvals),
            fired=frozenset(task.fired),
            deadline=task.deadline,
        ),
    )
    if not decided or not all(isinstance(entry, Decided) for entry in decided):
        return None
    for entry in decided:
        state = apply(state, entry)
    wanted = decide(state, runtime.limits, now)
    if wanted.ending is not None or wanted.notes or not wanted.work:
        return None
    intents: list[Intent] = []
    for work in wanted.work:
        call = state.call(work.call) if isinstance(work, CallTool) else None
        if call is None or not call.plan.needs_intent or not _as_approved(call, found.tools):
            return None
        intents.append(intent_of(state, call, now))
    for intent in intents:
        state = apply(state, intent)
    return Opening(entries=(*decided, *intents), recalled=replace(recalled, state=state))


def _decisions(task: TaskView, state: TaskState, approvals: Mapping[str, Manifest]) -> dict[tuple[int, int], Decision]:
    decisions = {}
    for call in state.open_calls:
        requested, manifest = call.requested, approvals.get(_name_of(task, call) or "")
        if requested is None or manifest is None or approval_view(manifest).request.run != state.run:
            continue
        decision = decision_on(task.ref.name, state.run, call, requested, manifest)
        if decision is not None:
            decisions[call.plan.call, requested.ask] = decision
    return decisions


def _as_approved(call: CallState, listed: Mapping[str, ToolSpec | None]) -> bool:
    spec = listed.get(call.plan.tool)
    return spec is not None and bool(call.approved_schema) and spec.schema_digest == call.approved_schema
