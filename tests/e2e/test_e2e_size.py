"""A long task costs what its steps cost: 500 steps of real pod JSON, sizes as the API server sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aura_operator.core.entries import ModelAnswered, Result
from aura_operator.core.transcript import Inline, Secret, Stored
from aura_operator.testing.proxy_rules import SeenRequest
from aura_operator.testing.proxy_thread import ProxyThread
from hack.kubectl import Kubectl
from tests.e2e.toolserver import ToolServer
from tests.processes import Processes
from tests.stage import Stage, says

STEPS = 500
RESULT_BYTES = 10_000
LARGEST_OBJECT_BYTES = 256 * 1024
CONTAINER: dict[str, Any] = {
    "image": "registry.example/shop/checkout:2.14.7",
    "env": [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "FEATURES", "value": "retries,tracing,canary"},
    ],
    "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
    "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "periodSeconds": 5},
    "volumeMounts": [{"name": "config", "mountPath": "/etc/checkout"}],
}


def pod_json(kubectl: Kubectl) -> str:
    """What the API server says of a pod, in pretty print as tools return it, of the wanted size; NUMB is its number."""
    names = [f"checkout-{number}" for number in range(2)]
    spec = {
        "containers": [{"name": name, **CONTAINER} for name in names],
        "volumes": [{"name": "config", "configMap": {"name": "checkout"}}],
    }
    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=20s")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "checkout-numb"}, "spec": spec}
    kubectl("create", "--filename", "-", stdin=pod)
    shown = kubectl("get", "pod", "checkout-numb", "--output", "json", "--show-managed-fields")
    # Each step's pod is another one: its name and uid differ, as they do in a real list.
    return shown.replace("checkout-numb", "checkout-NUMB").replace(json.loads(shown)["metadata"]["uid"][:4], "NUMB")


def size_of(payload: Any) -> int:
    match payload:
        case Inline(text=text):
            return len(text.encode())
        case Stored(size_bytes=size) | Secret(size_bytes=size):
            return int(size)
    raise AssertionError(payload)


@pytest.mark.behaviour(30)
@pytest.mark.timeout(300)
async def test_five_hundred_steps_of_ten_kilobytes_stay_small_and_flat(
    stage: Stage,
    processes: Processes,
    kubectl: Kubectl,
    toolserver: ToolServer,
    proxy: ProxyThread,
    through: Callable[[ProxyThread, Path], Path],
) -> None:
    text = pod_json(kubectl)
    assert RESULT_BYTES * 0.8 < len(text) < RESULT_BYTES * 1.5, len(text)
    toolserver.file.with_suffix(".pod").write_text(text)
    script = [{"text": "", "calls": [{"tool": "t__pod", "args": {"number": number}}]} for number in range(STEPS)]
    await stage.agent(
        [*script, says("ok")],
        mcpServers=[{"name": "t", "transport": "StreamableHTTP", "url": toolserver.url}],
        tools=[{"match": "t__pod", "effect": "Read"}],
        limits={"turns": STEPS + 10},
    )
    stage.timeout_seconds = 240
    processes.worker(kubeconfig=through(proxy, processes.worker_kubeconfig))
    await stage.task()
    await stage.done()

    entries = await stage.entries()
    useful = sum(size_of(entry.payload) for entry in entries if isinstance(entry, Result | ModelAnswered))
    assert len([entry for entry in entries if isinstance(entry, Result)]) == STEPS
    objects = [await stage.read(), *await stage.checkpoints()]
    sizes = [len(json.dumps(item, separators=(",", ":")).encode()) for item in objects]
    assert max(sizes) <= LARGEST_OBJECT_BYTES
    assert sum(sizes) <= 1.3 * useful, f"{sum(sizes)} bytes are stored for {useful} useful ones"

    sent = _bytes_by_step(proxy)
    first, last = sum(sent[20:120]), sum(sent[-120:-20])
    assert last <= 1.1 * first, f"100 steps cost {first} bytes at the start and {last} at the end"
    appends = [request for request in _written(proxy) if request.method == "PATCH"]
    assert len(appends) <= STEPS + 10, "a result waits for the answer that follows it"


def _written(proxy: ProxyThread) -> list[SeenRequest]:
    return [
        exchange.request
        for exchange in proxy.proxy.log
        if exchange.request.method in ("PATCH", "POST")
        and ("/auratasks/one" in exchange.request.path or exchange.request.path.endswith("/auracheckpoints"))
    ]


def _bytes_by_step(proxy: ProxyThread) -> list[int]:
    """What was sent for each step: large results go one by one, so the nth of them begins the nth step."""
    steps: list[int] = [0]
    for request in _written(proxy):
        if request.path.endswith("/auracheckpoints") and '"type":"Payload"' in request.body.decode():
            steps.append(0)
        steps[-1] += len(request.body)
    return steps
