"""How long people and successors wait: decision → call, SIGTERM → next step, a new incarnation → next step.

Real worker and controller processes, a real tool server; its ledger says when a call began. Owns these figures.
"""

from __future__ import annotations

import asyncio
import json
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aura_operator.store.approvals import approval_ref
from aura_operator.store.interface import add
from aura_operator.store.kube import KubeStore
from aura_operator.store.resources import AGENTS, TASKS, Manifest, new
from aura_operator.store.view import task_ref
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.ledger_process import RunningLedger, running_ledger
from aura_operator.testing.openai_server import FakeCall, FakeReply, openai_server
from benchmarks.figures import Figure, median, percentile
from hack.cluster import Cluster
from hack.install import NAMESPACE
from hack.kubectl import Kubectl
from tests.processes import Processes, spawn

DECISIONS = 60
APPROVER = "bench-approver"
MEMORY_TASKS = 30
WAIT_SECONDS = 60.0


async def measure(cluster: Cluster, namespace: str) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder, running_ledger(Path(folder) / "ledger.jsonl") as server:
        processes = Processes(
            folder=Path(folder),
            namespace=namespace,
            operator_namespace=NAMESPACE,
            worker_kubeconfig=cluster.service_account_kubeconfig(NAMESPACE, "aura-worker"),
            controller_kubeconfig=cluster.service_account_kubeconfig(NAMESPACE, "aura-controller"),
            launch=spawn,
        )
        admin = Kubectl(cluster.kubeconfig, namespace=namespace)
        admin("create", "rolebinding", "approvers", "--clusterrole=aura-approver", f"--user={APPROVER}")
        approver = cluster.add_user(APPROVER, ())
        store, decider = await KubeStore.connect(str(cluster.kubeconfig)), await KubeStore.connect(str(approver))
        try:
            bench = _Bench(store=store, decider=decider, namespace=namespace, server=server, processes=processes)
            return [
                *await bench.decisions(),
                *await bench.hand_over(),
                *await bench.restart(),
                *await bench.memory(),
            ]
        finally:
            processes.end()
            await store.aclose()
            await decider.aclose()


class _Bench:
    def __init__(
        self,
        *,
        store: KubeStore,
        decider: KubeStore,
        namespace: str,
        server: RunningLedger,
        processes: Processes,
    ) -> None:
        self._store = store
        self._decider = decider
        self._namespace = namespace
        self._server = server
        self._ledger: Ledger = server.ledger
        self._processes = processes

    async def decisions(self) -> list[Figure]:
        """The decision's patch is sent → the approved call's line in the ledger."""
        await self._agent("approved", [_calls("once", "k"), {"text": "done"}], approval="Required")
        controller, workers = self._processes.controller(), [self._processes.worker(), self._processes.worker()]
        names = [f"decide-{number}" for number in range(DECISIONS)]
        for name in names:
            await self._task(name, "approved")
        for name in names:
            await self._phase(name, "Waiting")
        samples = []
        for name in names:
            before = len(self._ledger.starts("once"))
            ref = approval_ref(self._namespace, f"{name}-1")
            sent = time.time()
            await self._decider.patch(ref, [add("/spec/decision", {"approved": True, "reason": "bench"})])
            await _until(lambda before=before: len(self._ledger.starts("once")) > before)  # type: ignore[misc]
            samples.append((self._ledger.starts("once")[-1].at - sent) * 1000)
            await self._phase(name, "Succeeded")
        for process in (controller, *workers):
            process.terminate()
        return [
            Figure(name="decision-to-call-p50", value=median(samples), unit="ms", goal=25, samples=samples),
            Figure(name="decision-to-call-p99", value=percentile(samples, 99), unit="ms", goal=100),
        ]

    async def hand_over(self) -> list[Figure]:
        """SIGTERM to the owner in the middle of a model call → the next step's call, made by another worker."""
        await self._agent("slow", [_calls("read", "a"), _calls("read", "b", delay_seconds=0.5), {"text": "done"}])
        samples = []
        for number in range(5):
            workers = {worker.name: worker for worker in (self._processes.worker(), self._processes.worker())}
            name = f"hand-over-{number}"
            before = len(self._ledger.starts("read"))
            await self._task(name, "slow")
            await _until(lambda before=before: len(self._ledger.starts("read")) > before)  # type: ignore[misc]
            status = (await self._store.get(task_ref(self._namespace, name)))["status"]
            sent = time.time()
            workers[status["owner"]["worker"]].signal(signal.SIGTERM)
            # The next step is the model call that the new owner begins; it takes 500 ms by its script.
            await self._phase(name, "Succeeded")
            samples.append((self._ledger.starts("read")[-1].at - sent) * 1000 - 500)
            for worker in workers.values():
                worker.terminate()
        return [Figure(name="sigterm-to-step", value=median(samples), unit="ms", goal=200, samples=samples)]

    async def restart(self) -> list[Figure]:
        """kill -9 and a new incarnation with the same Pod UID: it is ready → the next step's call."""
        await self._agent("killed", [_calls("idempotent", "k", seconds=30), {"text": "done"}])
        controller = self._processes.controller()
        samples = []
        for number in range(5):
            worker = self._processes.worker()
            before = len(self._ledger.starts("idempotent"))
            await self._task(f"killed-{number}", "killed")
            await _until(lambda before=before: len(self._ledger.starts("idempotent")) > before)  # type: ignore[misc]
            worker.kill9()
            again = self._processes.worker(worker.name, pod_uid=worker.pod_uid)
            ready = time.time()
            await _until(lambda before=before: len(self._ledger.starts("idempotent")) > before + 1)  # type: ignore[misc]
            samples.append(max(0.0, (self._ledger.starts("idempotent")[-1].at - ready) * 1000))
            again.kill9()
            await self._delete(f"killed-{number}")
        controller.terminate()
        return [Figure(name="restart-to-step", value=median(samples), unit="ms", goal=1000, samples=samples)]

    async def memory(self) -> list[Figure]:
        """After work: the worker has spoken to models over HTTP by the OpenAI adapter, and to a tool server."""
        async with openai_server(
            FakeReply(calls=(FakeCall(tool="led__read", arguments='{"key":"m"}'),), finish_reason="tool_calls"),
            FakeReply(text="done"),
        ) as model:
            spec = self._spec({"name": "openai-chat:fake", "baseURL": model.url}, approval="NotRequired")
            await self._store.create(AGENTS, new(AGENTS, self._namespace, "openai", spec=spec))
            controller, worker = self._processes.controller(), self._processes.worker()
            for number in range(MEMORY_TASKS):
                await self._task(f"memory-{number}", "openai")
            for number in range(MEMORY_TASKS):
                await self._phase(f"memory-{number}", "Succeeded")
            used = {"worker": _rss(worker.pid), "controller": _rss(controller.pid)}
            for process in (controller, worker):
                process.terminate()
        return [
            Figure(name="worker-rss", value=used["worker"], unit="MB", goal=150),
            Figure(name="controller-rss", value=used["controller"], unit="MB", goal=100),
        ]

    async def _agent(self, name: str, script: list[dict[str, Any]], *, approval: str = "NotRequired") -> None:
        model = {"name": "scripted:bench", "settings": {"script": script}}
        spec = self._spec(model, approval=approval)
        await self._store.create(AGENTS, new(AGENTS, self._namespace, name, spec=spec))

    def _spec(self, model: dict[str, Any], *, approval: str) -> dict[str, Any]:
        return {
            "model": model,
            "mcpServers": [{"name": "led", "transport": "StreamableHTTP", "url": self._server.url}],
            "tools": [
                {"match": "led__read", "effect": "Read"},
                {"match": "led__idempotent", "effect": "Idempotent", "approval": "NotRequired"},
                {"match": "led__once", "effect": "Once", "approval": approval},
            ],
            "approvals": {"approvers": {"users": [APPROVER]}},
        }

    async def _task(self, name: str, agent: str) -> None:
        spec = {"agentRef": {"name": agent}, "input": name}
        await self._store.create(TASKS, new(TASKS, self._namespace, name, spec=spec))

    async def _phase(self, name: str, phase: str) -> Manifest:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            manifest = await self._store.get(task_ref(self._namespace, name))
            if manifest["status"]["phase"] == phase:
                return manifest
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} is not {phase}: {json.dumps(manifest['status'])[:500]}")
            await asyncio.sleep(0.02)

    async def _delete(self, name: str) -> None:
        ops = [add("/metadata/annotations", {"aura.mezmo.com/forget-unresolved": "true"})]
        manifest = await self._store.patch(task_ref(self._namespace, name), ops)
        await self._store.delete(task_ref(self._namespace, name), uid=manifest["metadata"]["uid"])


def _calls(tool: str, key: str, *, delay_seconds: float = 0.0, **arguments: Any) -> dict[str, Any]:
    call = {"tool": f"led__{tool}", "args": {"key": key, **arguments}}
    return {"text": "", "calls": [call], "delay_seconds": delay_seconds}


async def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the ledger did not see the call")
        await asyncio.sleep(0.002)


def _rss(pid: int) -> float:
    """Resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise ValueError(f"process {pid} has no VmRSS")
