"""A task is seen and followed from elsewhere while it changes hands."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from aura_operator.testing.ledger import Ledger
from hack.cluster import tools
from hack.kubectl import Kubectl
from hack.rig.forkserver import fork
from tests.processes import Processes
from tests.stage import Stage, calls, says, started


@pytest.mark.behaviour(1)
async def test_a_viewer_lists_shows_and_follows_a_task_while_it_changes_hands(
    stage: Stage, processes: Processes, ledger: Ledger, kubectl: Kubectl, kubectl_as: Callable[[str], Kubectl]
) -> None:
    kubectl("create", "rolebinding", "viewers", "--clusterrole=aura-viewer", "--user=carol")
    carol = kubectl_as("carol")
    await stage.agent(
        [
            calls(("led__read", {"key": "a"})),
            calls(("led__idempotent", {"key": "b", "seconds": 1})),
            says("all is well"),
        ]
    )
    await stage.task()
    processes.controller()
    first = processes.worker()
    kubectl_path = str(tools.bin_folder() / "kubectl")
    place = ("--kubeconfig", str(carol.kubeconfig), "--namespace", stage.namespace)
    follower = await asyncio.create_subprocess_exec(
        kubectl_path, *place, "get", "auratask", "one", "--watch", stdout=asyncio.subprocess.PIPE
    )
    awaited = asyncio.create_task(
        asyncio.to_thread(carol, "wait", "--for=condition=Complete", "at/one", "--timeout=30s")
    )
    await started(ledger, "idempotent")
    assert re.search(r"^one +sre +Running +call 2: led__idempotent +3 ", carol("get", "auratasks"), re.MULTILINE)
    second = processes.worker()
    first.signal(signal.SIGTERM)
    await awaited
    assert second.name != first.name
    shown = carol("describe", "at", "one")
    assert re.search(r"Complete\s", shown) and "all is well" in shown
    assert follower.stdout is not None
    phases: list[str] = []
    async with asyncio.timeout(10):
        while "Succeeded" not in phases:
            columns = (await follower.stdout.readline()).decode().split()
            phases.append(columns[2])
    follower.kill()
    await follower.wait()
    assert phases.count("Running") >= 2
    steps = timeline(carol, stage.namespace, processes.folder)
    assert f"by {first.name}" in steps and "finished   Succeeded" in steps


def timeline(user: Kubectl, namespace: str, folder: Path, task: str = "one") -> str:
    """What `aura timeline` prints for a user."""
    output = folder / "timeline.txt"
    output.unlink(missing_ok=True)
    shown = fork(["timeline", task, "--namespace", namespace, "--kubeconfig", str(user.kubeconfig)], output)
    assert shown.wait(timeout=10) == 0, output.read_text()
    return output.read_text()
