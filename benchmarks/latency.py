"""How long people and successors wait: decision → call, SIGTERM → next step, a new incarnation → next step.

Real worker and controller processes, a real tool server; its ledger says when a call began. Owns these figures.
"""

from __future__ import annotations

import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from aura_operator.store.approvals import approval_ref
from aura_operator.store.interface import add
from aura_operator.store.kube import KubeStore
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.ledger_process import running_ledger
from aura_operator.testing.openai_server import FakeCall, FakeReply, openai_server
from benchmarks import lean, place
from benchmarks.figures import Figure, median, percentile
from benchmarks.raw import RawTask
from hack.cluster import Cluster
from hack.install import NAMESPACE
from hack.kubectl import Kubectl
from hack.rig.processes import Processes
from hack.rig.stage import Stage
from hack.rig.waiting import until

DECISIONS = 60
APPROVER = "bench-approver"
MEMORY_TASKS = 30
RAW_APPENDS = 3  # before each decision, so that both meet the same machine
WAIT_SECONDS = 60.0


async def measure(cluster: Cluster, namespace: str) -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder, running_ledger(Path(folder) / "ledger.jsonl") as server:
        processes = Processes(
            folder=Path(folder),
            namespace=namespace,
            operator_namespace=NAMESPACE,
            worker_kubeconfig=cluster.service_account_kubeconfig(NAMESPACE, "aura-worker"),
            controller_kubeconfig=cluster.service_account_kubeconfig(NAMESPACE, "aura-controller"),
            launch=lean.launch(lean.python()),
        )
        admin = Kubectl(cluster.kubeconfig, namespace=namespace)
        admin("create", "rolebinding", "approvers", "--clusterrole=aura-approver", f"--user={APPROVER}")
        approver = cluster.add_user(APPROVER, ())
        store, decider = await KubeStore.connect(str(cluster.kubeconfig)), await KubeStore.connect(str(approver))
        try:
            stage = Stage(
                store=store,
                namespace=namespace,
                ledger_url=server.url,
                approver=APPROVER,
                timeout_seconds=WAIT_SECONDS,
            )
            raw = await RawTask.create(store, place.namespace(cluster))
            bench = _Bench(stage=stage, decider=decider, raw=raw, ledger=server.ledger, processes=processes)
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
    def __init__(self, *, stage: Stage, decider: KubeStore, raw: RawTask, ledger: Ledger, processes: Processes) -> None:
        self._stage = stage
        self._decider = decider
        self._raw = raw
        self._ledger = ledger
        self._processes = processes

    async def decisions(self) -> list[Figure]:
        """The decision's patch is sent → the approved call's line in the ledger."""
        rule = {"match": "led__once", "effect": "Once", "approval": "Required"}
        await self._stage.agent([_calls("once", "k"), {"text": "done"}], name="approved", tools=[rule])
        controller, workers = self._processes.controller(), [self._processes.worker(), self._processes.worker()]
        names = [f"decide-{number}" for number in range(DECISIONS)]
        for name in names:
            await self._stage.task(name, agent="approved")
        for name in names:
            await self._stage.until_phase(name, "Waiting")
        samples, appends = [], []
        for name in names:
            appends += await self._raw.appends(RAW_APPENDS)
            before = len(self._ledger.starts("once"))
            ref = approval_ref(self._stage.namespace, f"{name}-1")
            sent = time.time()
            await self._decider.patch(ref, [add("/spec/decision", {"approved": True, "reason": "bench"})])
            begun = await self._started("once", before + 1)
            samples.append((begun - sent) * 1000)
            await self._stage.until_phase(name, "Succeeded")
        for process in (controller, *workers):
            process.terminate()
        floor, p50, p99 = median(appends), median(samples), percentile(samples, 99)
        return [
            Figure(name="raw-append-p50", value=floor, samples=appends),
            Figure(name="decision-to-call-p50", value=p50, samples=samples),
            Figure(name="decision-to-call-p99", value=p99),
            Figure(name="decision-to-call-p50-ratio", value=p50 / floor),
            Figure(name="decision-to-call-p99-ratio", value=p99 / floor),
        ]

    async def hand_over(self) -> list[Figure]:
        """SIGTERM to the owner in the middle of a model call → the next step's call, made by another worker."""
        script = [_calls("read", "a"), _calls("read", "b", delay_seconds=0.5), {"text": "done"}]
        await self._stage.agent(script, name="slow")
        samples = []
        for number in range(5):
            workers = {worker.name: worker for worker in (self._processes.worker(), self._processes.worker())}
            name = f"hand-over-{number}"
            before = len(self._ledger.starts("read"))
            await self._stage.task(name, agent="slow")
            await self._started("read", before + 1)
            status = await self._stage.status(name)
            sent = time.time()
            workers[status["owner"]["worker"]].signal(signal.SIGTERM)
            # The next step is the model call that the new owner begins; it takes 500 ms by its script.
            await self._stage.until_phase(name, "Succeeded")
            samples.append((self._ledger.starts("read")[-1].at - sent) * 1000 - 500)
            for worker in workers.values():
                worker.terminate()
        return [Figure(name="sigterm-to-step", value=median(samples), samples=samples)]

    async def restart(self) -> list[Figure]:
        """kill -9 and a new incarnation with the same Pod UID: it is ready → the next step's call."""
        await self._stage.agent([_calls("idempotent", "k", seconds=30), {"text": "done"}], name="killed")
        controller = self._processes.controller()
        samples = []
        for number in range(5):
            worker = self._processes.worker()
            before = len(self._ledger.starts("idempotent"))
            await self._stage.task(f"killed-{number}", agent="killed")
            await self._started("idempotent", before + 1)
            worker.kill9()
            again = self._processes.worker(worker.name, pod_uid=worker.pod_uid)
            ready = time.time()
            begun = await self._started("idempotent", before + 2)
            samples.append(max(0.0, (begun - ready) * 1000))
            again.kill9()
            await self._stage.forget(f"killed-{number}")
        controller.terminate()
        return [Figure(name="restart-to-step", value=median(samples), samples=samples)]

    async def memory(self) -> list[Figure]:
        """After work: the worker has spoken to models over HTTP by the OpenAI adapter, and to a tool server."""
        async with openai_server(
            FakeReply(calls=(FakeCall(tool="led__read", arguments='{"key":"m"}'),), finish_reason="tool_calls"),
            FakeReply(text="done"),
        ) as model:
            await self._stage.agent([], name="openai", model={"name": "openai-chat:fake", "baseURL": model.url})
            controller, worker = self._processes.controller(), self._processes.worker()
            for number in range(MEMORY_TASKS):
                await self._stage.task(f"memory-{number}", agent="openai")
            for number in range(MEMORY_TASKS):
                await self._stage.until_phase(f"memory-{number}", "Succeeded")
            used = {"worker": _rss(worker.pid), "controller": _rss(controller.pid)}
            for process in (controller, worker):
                process.terminate()
        return [
            Figure(name="worker-rss", value=used["worker"]),
            Figure(name="controller-rss", value=used["controller"]),
        ]

    async def _started(self, tool: str, count: int) -> float:
        """When the tool's call of that number began, as soon as it has."""
        seen = -1

        def begun() -> bool:
            nonlocal seen
            size = self._ledger.path.stat().st_size if self._ledger.path.exists() else 0
            if size == seen:  # reading it each time would take a good part of a core from what is measured
                return False
            seen = size
            return len(self._ledger.starts(tool)) >= count

        await until(begun, f"call {count} of {tool}", pause_seconds=0.002)
        return self._ledger.starts(tool)[-1].at


def _calls(tool: str, key: str, *, delay_seconds: float = 0.0, **arguments: Any) -> dict[str, Any]:
    call = {"tool": f"led__{tool}", "args": {"key": key, **arguments}}
    return {"text": "", "calls": [call], "delay_seconds": delay_seconds}


def _rss(pid: int) -> float:
    """Resident memory in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1000
    raise ValueError(f"process {pid} has no VmRSS")
