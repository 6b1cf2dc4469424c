"""What one step costs: reads, once-effects, and 500 steps of 10 KB. Owns these figures."""

from __future__ import annotations

import json
from dataclasses import replace

from aura_operator.core.effects import Effect
from aura_operator.core.lifecycle import Phase
from aura_operator.store.interface import Selection
from aura_operator.store.resources import CHECKPOINTS, TASKS, new
from aura_operator.store.view import task_ref, task_view
from aura_operator.worker.ending import Ended
from aura_operator.worker.intake import Intake
from benchmarks import raw
from benchmarks.figures import Figure, median, percentile
from benchmarks.instant import Instant, InstantRuntimes
from benchmarks.place import Seat, seat
from benchmarks.pods import pod_json
from hack.cluster import Cluster
from hack.rig.stage import list_all

STEPS = 500
WINDOW = 20  # steps on each side that stand for "at step n"


async def measure(cluster: Cluster, namespace: str) -> list[Figure]:
    async with seat(cluster.kubeconfig) as here:
        appends = await raw.appends(here.store, namespace, 300)
        floor = median(appends)
        figures = [
            Figure(name="raw-append-p50", value=floor, unit="ms", goal=None, samples=appends),
            Figure(name="raw-append-p99", value=percentile(appends, 99), unit="ms", goal=None),
        ]
        figures += await _reads(here, namespace)
        figures += await _once(here, namespace, floor)
        figures += await _large(here, namespace)
    return figures


async def _run(here: Seat, namespace: str, name: str, instant: Instant, effect: Effect) -> None:
    """One task from its claim to its end, in this process."""
    spec = {"agentRef": {"name": "none"}, "input": name}
    manifest = await here.store.create(TASKS, new(TASKS, namespace, name, spec=spec))
    task = replace(task_view(manifest), revision="bench-revision")
    ended = await Intake(here.context, InstantRuntimes(instant, effect), task).run()
    assert ended is Ended.FINISHED, ended
    status = (await here.store.get(task_ref(namespace, name)))["status"]
    assert status["phase"] == Phase.SUCCEEDED.value, status


async def _reads(here: Seat, namespace: str) -> list[Figure]:
    instant = Instant(steps=STEPS + WINDOW)
    await _run(here, namespace, "reads", instant, Effect.READ)
    gaps = [(asked - answered) * 1000 for answered, asked in zip(instant.answered, instant.asked[1:], strict=True)]
    early, late = gaps[:WINDOW], gaps[STEPS - WINDOW : STEPS + WINDOW]
    return [
        Figure(name="read-step-10", value=median(early), unit="ms", goal=0.3, samples=early),
        Figure(name="read-step-500", value=median(late), unit="ms", goal=0.3, samples=late),
    ]


async def _once(here: Seat, namespace: str, floor: float) -> list[Figure]:
    instant = Instant(steps=300)
    await _run(here, namespace, "once", instant, Effect.ONCE)
    gaps = [(later - sent) * 1000 for sent, later in zip(instant.sent, instant.sent[1:], strict=False)]
    # The raw append again, right after: the machine's mood changes within a minute.
    both = (floor + median(await raw.appends(here.store, namespace, 300))) / 2
    return [
        Figure(name="once-step-p50", value=median(gaps), unit="ms", goal=None, samples=gaps),
        Figure(name="once-step-ratio", value=median(gaps) / both, unit="x", goal=1.2),
    ]


async def _large(here: Seat, namespace: str) -> list[Figure]:
    """500 steps, each with 10 KB of real pod JSON."""
    text = pod_json(10 * 1024)
    instant = Instant(steps=STEPS, result=text)
    texts = [pod_json(10 * 1024, number) for number in range(STEPS)]
    useful = sum(len(item.encode()) for item in texts)
    original = instant.call

    async def call(*args: object, **options: object) -> object:
        instant.result = texts[len(instant.sent)]
        return await original(*args, **options)  # type: ignore[arg-type]

    instant.call = call  # type: ignore[method-assign,assignment]
    await _run(here, namespace, "large", instant, Effect.READ)
    gaps = [(later - asked) * 1000 for asked, later in zip(instant.asked, instant.asked[1:], strict=False)]
    quarter = STEPS // 5
    start, end = gaps[WINDOW : WINDOW + quarter], gaps[-quarter:]
    sizes = await _stored(here, namespace, "large")
    return [
        Figure(name="large-step-start", value=median(start), unit="ms", goal=None, samples=start),
        Figure(name="large-step-growth", value=median(end) / median(start), unit="x", goal=1.1, samples=end),
        Figure(name="large-stored", value=sum(sizes) / useful, unit="x", goal=1.3),
        Figure(name="large-object", value=max(sizes) / 1024, unit="KiB", goal=256),
    ]


async def _stored(here: Seat, namespace: str, name: str) -> list[int]:
    """Bytes of the task's object and of all its AuraCheckpoints."""
    checkpoints = await list_all(here.store, Selection(resource=CHECKPOINTS, namespace=namespace))
    theirs = [item for item in checkpoints if item["spec"]["owner"]["name"] == name]
    return [len(json.dumps(item)) for item in (await here.store.get(task_ref(namespace, name)), *theirs)]
