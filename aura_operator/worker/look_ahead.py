"""What is read beside a claim: after a decision every millisecond is a person's.

Nothing depends on it. What can't be had now, or not soon, is read when it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from aura_operator.agent.specs import ToolSpec
from aura_operator.clock import Clock
from aura_operator.errors import AuraError, StoreError
from aura_operator.store.approvals import approval_ref, approval_view
from aura_operator.store.interface import Store
from aura_operator.store.resources import Manifest
from aura_operator.store.view import TaskView
from aura_operator.worker.runtime import RuntimeSource

log = structlog.get_logger()

LOOK_SECONDS = 0.25  # what takes longer is read when it is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """`approvals` by name. `tools`: those that the approvals are about, as their servers listed them after the task was
    woken; None for one that is gone. `listed_at` is when that was begun."""

    approvals: Mapping[str, Manifest] = field(default_factory=dict)
    tools: Mapping[str, ToolSpec | None] = field(default_factory=dict)
    listed_at: float = 0.0


async def look_ahead(store: Store, clock: Clock, runtimes: RuntimeSource, task: TaskView) -> Ahead:
    """The approvals that a task waits for, and the tools of those that woke it. Raises nothing."""
    approvals: dict[str, Manifest] = {}
    tools: dict[str, ToolSpec | None] = {}
    began = clock.boot()
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            await _read_approvals(store, task, approvals)
            woken_for = {approval_view(approvals[name]).request.tool for name in task.fired if name in approvals}
            if woken_for and task.revision:
                await _list_tools(runtimes, task, woken_for, tools)
    except (AuraError, TimeoutError, ValueError, KeyError) as error:  # also an object that a newer version wrote
        log.debug("not all was read ahead", task=str(task.ref), error=repr(error))
    return Ahead(approvals=approvals, tools=tools, listed_at=began)


async def _read_approvals(store: Store, task: TaskView, found: dict[str, Manifest]) -> None:
    async def read(name: str) -> None:
        try:
            found[name] = await store.get(approval_ref(task.ref.namespace, name))
        except StoreError as error:
            log.debug("approval not read ahead", approval=name, error=str(error))

    await asyncio.gather(*(read(wait.name) for wait in task.waiting_for if wait.kind.of_people))


async def _list_tools(
    runtimes: RuntimeSource, task: TaskView, names: Iterable[str], listed: dict[str, ToolSpec | None]
) -> None:
    async with runtimes.use(task.ref.namespace, task.revision) as runtime:
        known = await runtime.tools()
        for name in names:
            if name in known:
                listed[name] = await runtime.toolbox.fresh(name)
