"""What is read beside a claim: after a decision every millisecond is a person's.

Nothing depends on it. What can't be had now, or not soon, is read when it is needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import structlog

from aura_operator.agent.specs import ToolSpec
from aura_operator.errors import AuraError, StoreError
from aura_operator.store.approvals import approval_ref, approval_view
from aura_operator.store.interface import Store
from aura_operator.store.resources import Manifest
from aura_operator.store.view import TaskView
from aura_operator.worker.runtime import RuntimeSource

log = structlog.get_logger()

LISTING_SECONDS = 0.25  # a server that takes longer is asked again when its tool is called


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """`approvals` by name. `tools`: those that the approvals are about, as their servers listed them after the task was
    woken; None for one that is gone."""

    approvals: Mapping[str, Manifest] = field(default_factory=dict)
    tools: Mapping[str, ToolSpec | None] = field(default_factory=dict)


async def look_ahead(store: Store, runtimes: RuntimeSource, task: TaskView) -> Ahead:
    """The approvals that a task waits for, and the tools of those that woke it. Raises nothing."""
    names = [wait.name for wait in task.waiting_for if wait.kind.of_people]
    found = await asyncio.gather(*(_approval(store, task.ref.namespace, name) for name in names))
    approvals = {name: manifest for name, manifest in zip(names, found, strict=True) if manifest is not None}
    woken_for = {approval_view(approvals[name]).request.tool for name in task.fired if name in approvals}
    tools = await _tools(runtimes, task, woken_for) if woken_for and task.revision else {}
    return Ahead(approvals=approvals, tools=tools)


async def _approval(store: Store, namespace: str, name: str) -> Manifest | None:
    try:
        return await store.get(approval_ref(namespace, name))
    except StoreError as error:
        log.debug("approval not read ahead", approval=name, error=str(error))
        return None


async def _tools(runtimes: RuntimeSource, task: TaskView, names: Iterable[str]) -> Mapping[str, ToolSpec | None]:
    try:
        async with asyncio.timeout(LISTING_SECONDS), runtimes.use(task.ref.namespace, task.revision) as runtime:
            known = await runtime.tools()
            wanted = [name for name in names if name in known]
            listed = await asyncio.gather(*(runtime.toolbox.fresh(name) for name in wanted))
            return dict(zip(wanted, listed, strict=True))
    except (AuraError, TimeoutError) as error:
        log.debug("tools not listed ahead", task=str(task.ref), error=str(error))
        return {}
