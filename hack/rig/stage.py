"""A namespace with agents and tasks in it: setting it up and looking at it. Owns manifests and waiting for states.

Waits by condition against the real API server; nothing here knows how the operator works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aura_operator.clock import SystemClock
from aura_operator.core.entries import Entry
from aura_operator.errors import NotFoundError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.interface import Op, Selection, Store, add
from aura_operator.store.journal_reads import read_entries
from aura_operator.store.kube import KubeStore
from aura_operator.store.resources import AGENTS, APPROVALS, CHECKPOINTS, EVENTS, TASKS, Manifest, Ref, Resource, new
from aura_operator.store.view import task_ref, task_view
from aura_operator.testing.ledger import Ledger, LedgerLine
from hack.rig.waiting import until

POLL_SECONDS = 0.03
FORGET = "aura.mezmo.com/forget-unresolved"
APPROVER = "bob"


@dataclass(kw_only=True)
class Stage:
    """Agents, tasks and approvals of one namespace. `store` acts as a cluster admin."""

    store: KubeStore
    namespace: str
    ledger_url: str
    approver: str = APPROVER
    timeout_seconds: float = 30.0

    async def agent(
        self,
        script: list[dict[str, Any]],
        *,
        name: str = "sre",
        tools: list[dict[str, Any]] | None = None,
        four_eyes: bool = True,
        expires_after_seconds: int = 600,
        limits: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Manifest:
        """An agent whose model follows `script` (see agent/models/scripted.py), with the ledger's tools as `led__…`.

        By default `led__read` is Read, `led__idempotent` Idempotent, `led__once` Once, none needs approval.
        """
        declared = [
            {"match": "led__read", "effect": "Read"},
            {"match": "led__idempotent", "effect": "Idempotent", "approval": "NotRequired"},
            {"match": "led__once", "effect": "Once", "approval": "NotRequired"},
        ]
        body = {
            "model": {"name": "scripted:test", "settings": {"script": script}},
            "mcpServers": [{"name": "led", "transport": "StreamableHTTP", "url": self.ledger_url}],
            "tools": (tools or []) + declared,
            "approvals": {
                "approvers": {"users": [self.approver]},
                "fourEyes": four_eyes,
                "expiresAfterSeconds": expires_after_seconds,
            },
            **({"limits": limits} if limits else {}),
            **spec,
        }
        return await self.store.create(AGENTS, new(AGENTS, self.namespace, name, spec=body))

    async def task(self, name: str = "one", *, agent: str = "sre", text: str = "go", **spec: Any) -> Manifest:
        body = {"agentRef": {"name": agent}, "input": text, **spec}
        return await self.store.create(TASKS, new(TASKS, self.namespace, name, spec=body))

    async def read(self, name: str = "one") -> Manifest:
        return await self.store.get(task_ref(self.namespace, name))

    async def status(self, name: str = "one") -> dict[str, Any]:
        status: dict[str, Any] = (await self.read(name))["status"]
        return status

    async def until(self, name: str, holds: Callable[[dict[str, Any]], Any], what: str = "") -> dict[str, Any]:
        """The status of a task once `holds` is true of it."""
        status: dict[str, Any] = {}

        async def look() -> bool:
            nonlocal status
            status = await self.status(name)
            return bool(holds(status))

        await self._await(look, lambda: f"{name} that is {what or 'what was awaited'}: {status}")
        return status

    async def until_phase(self, name: str, *phases: str) -> dict[str, Any]:
        return await self.until(name, lambda status: status["phase"] in phases, " or ".join(phases))

    async def done(self, name: str = "one") -> dict[str, Any]:
        """The status of a task that must succeed."""
        status = await self.until_phase(name, "Succeeded", "Failed", "Cancelled")
        assert status["phase"] == "Succeeded", status
        return status

    async def approval(self, name: str, holds: Callable[[Manifest], Any] = lambda manifest: True) -> Manifest:
        """An approval once it is there and `holds` is true of it."""
        manifest: Manifest = {}

        async def look() -> bool:
            nonlocal manifest
            try:
                manifest = await self.store.get(approval_ref(self.namespace, name))
            except NotFoundError:
                return False
            return bool(holds(manifest))

        await self._await(look, lambda: f"approval {name} that is what was awaited: {manifest}")
        return manifest

    async def patch_task(self, name: str, **spec: Any) -> None:
        ops: list[Op] = [add(f"/spec/{field}", value) for field, value in spec.items()]
        await self.store.patch(task_ref(self.namespace, name), ops)

    async def all(self, resource: Resource) -> list[Manifest]:
        return await list_all(self.store, Selection(resource=resource, namespace=self.namespace))

    async def approvals(self) -> list[Manifest]:
        return await self.all(APPROVALS)

    async def checkpoints(self) -> list[Manifest]:
        return await self.all(CHECKPOINTS)

    async def entries(self, name: str = "one") -> list[Entry]:
        """The whole journal of a task; reading it checks its chain."""
        return await read_entries(self.store, task_view(await self.read(name)), SystemClock())

    async def events(self, name: str = "one") -> list[Manifest]:
        """The Events about a task, as `kubectl describe` shows them."""
        found = await self.all(EVENTS)
        return [event for event in found if event["regarding"]["name"] == name]

    async def delete(self, ref: Ref) -> None:
        manifest = await self.store.get(ref)
        await self.store.delete(ref, uid=manifest["metadata"]["uid"])

    async def forget(self, name: str) -> None:
        """Deletes a task, whatever is unresolved in it."""
        await self.store.patch(task_ref(self.namespace, name), [add("/metadata/annotations", {FORGET: "true"})])
        await self.delete(task_ref(self.namespace, name))

    async def _await(self, look: Callable[[], Any], what: Callable[[], str]) -> None:
        await until(look, what, self.timeout_seconds, pause_seconds=POLL_SECONDS)


async def started(ledger: Ledger, tool: str, key: str | None = None, *, count: int = 1) -> tuple[LedgerLine, ...]:
    """The starts of a tool once the ledger has seen that many."""
    await until(lambda: len(ledger.starts(tool, key)) >= count, f"start {count} of {tool}")
    return ledger.starts(tool, key)


async def ended(ledger: Ledger, tool: str, key: str | None = None) -> tuple[LedgerLine, ...]:
    """The ends of a tool's calls once there is one."""
    await until(lambda: ledger.phase("end", tool, key), f"end of {tool}")
    return ledger.phase("end", tool, key)


async def list_all(store: Store, selection: Selection) -> list[Manifest]:
    """All that is selected, page by page."""
    found: list[Manifest] = []
    page = await store.list(selection)
    while True:
        found += page.items
        if page.continue_token is None:
            return found
        page = await store.list(selection, continue_token=page.continue_token)


def calls(*tools: tuple[str, dict[str, Any]], **step: Any) -> dict[str, Any]:
    """One step of a script: the model calls these tools, side by side."""
    return {"text": "", "calls": [{"tool": tool, "args": args} for tool, args in tools], **step}


def says(text: str, **step: Any) -> dict[str, Any]:
    """The last step of a script."""
    return {"text": text, **step}


ECHO = {"echo": True}
"""A last step that answers with all that the model was told."""
