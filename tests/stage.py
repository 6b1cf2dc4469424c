"""A namespace with agents and tasks in it, as tests set it up and look at it. Owns manifests and waiting for states.

Waits by condition against the real API server; nothing here knows how the operator works.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aura_operator.clock import SystemClock
from aura_operator.core.entries import Entry
from aura_operator.errors import NotFoundError
from aura_operator.store.approvals import approval_ref
from aura_operator.store.interface import Op, Selection, add
from aura_operator.store.journal_reads import read_entries
from aura_operator.store.kube import KubeStore
from aura_operator.store.resources import AGENTS, APPROVALS, CHECKPOINTS, EVENTS, TASKS, Manifest, Ref, Resource, new
from aura_operator.store.view import task_ref, task_view
from aura_operator.testing.ledger import Ledger, LedgerLine

POLL_SECONDS = 0.03
APPROVER = "bob"


@dataclass(kw_only=True)
class Stage:
    """Agents, tasks and approvals of one namespace. `store` acts as a cluster admin."""

    store: KubeStore
    namespace: str
    ledger_url: str
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
                "approvers": {"users": [APPROVER]},
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
        deadline = time.monotonic() + self.timeout_seconds
        while True:
            status = await self.status(name)
            if holds(status):
                return status
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} did not become {what or 'what was awaited'}: {status}")
            await asyncio.sleep(POLL_SECONDS)

    async def until_phase(self, name: str, *phases: str) -> dict[str, Any]:
        return await self.until(name, lambda status: status["phase"] in phases, " or ".join(phases))

    async def done(self, name: str = "one") -> dict[str, Any]:
        """The status of a task that must succeed."""
        status = await self.until_phase(name, "Succeeded", "Failed", "Cancelled")
        assert status["phase"] == "Succeeded", status
        return status

    async def approval(self, name: str, holds: Callable[[Manifest], Any] = lambda manifest: True) -> Manifest:
        """An approval once it is there and `holds` is true of it."""
        deadline = time.monotonic() + self.timeout_seconds
        while True:
            try:
                manifest = await self.store.get(approval_ref(self.namespace, name))
                if holds(manifest):
                    return manifest
            except NotFoundError:
                manifest = {}
            if time.monotonic() > deadline:
                raise AssertionError(f"approval {name} did not become what was awaited: {manifest}")
            await asyncio.sleep(POLL_SECONDS)

    async def patch_task(self, name: str, **spec: Any) -> None:
        ops: list[Op] = [add(f"/spec/{field}", value) for field, value in spec.items()]
        await self.store.patch(task_ref(self.namespace, name), ops)

    async def all(self, resource: Resource) -> list[Manifest]:
        page = await self.store.list(Selection(resource=resource, namespace=self.namespace))
        return page.items

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


async def until(holds: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    """Returns what `holds` returns once that is true; for what isn't a task: files, processes, the ledger."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise AssertionError(f"within {seconds} s there was no {what}")
        await asyncio.sleep(POLL_SECONDS / 3)
    return found


async def started(ledger: Ledger, tool: str, key: str | None = None, *, count: int = 1) -> tuple[LedgerLine, ...]:
    """The starts of a tool once the ledger has seen that many."""
    await until(lambda: len(ledger.starts(tool, key)) >= count, f"start {count} of {tool}")
    return ledger.starts(tool, key)


async def ended(ledger: Ledger, tool: str, key: str | None = None) -> tuple[LedgerLine, ...]:
    """The ends of a tool's calls once there is one."""
    await until(lambda: ledger.phase("end", tool, key), f"end of {tool}")
    return ledger.phase("end", tool, key)


def calls(*tools: tuple[str, dict[str, Any]], **step: Any) -> dict[str, Any]:
    """One step of a script: the model calls these tools, side by side."""
    return {"text": "", "calls": [{"tool": tool, "args": args} for tool, args in tools], **step}


def says(text: str, **step: Any) -> dict[str, Any]:
    """The last step of a script."""
    return {"text": text, **step}


ECHO = {"echo": True}
"""A last step that answers with all that the model was told."""
