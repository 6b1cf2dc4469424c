"""What one step costs: its writes, reads, once-effects, and 500 steps of 10 KB. Owns these figures."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise

from aura_operator.core.effects import Effect
from aura_operator.core.lifecycle import Phase
from aura_operator.store.interface import Selection
from aura_operator.store.resources import CHECKPOINTS, TASKS, new
from aura_operator.store.view import task_ref, task_view
from aura_operator.worker.intake import Intake
from aura_operator.worker.task.ending import Ended
from benchmarks.figures import Figure, differences, median, percentile
from benchmarks.instant import Instant, InstantRuntimes
from benchmarks.place import Seat, seat
from benchmarks.pods import pod_json
from benchmarks.raw import STEP, RawTask
from hack.cluster import Cluster
from hack.rig.stage import list_all

STEPS = 500
WINDOW = 20  # steps on each side that stand for "at step n"
SLOW_READS = {20: 100, 300: 30}
"""Milliseconds that the tool takes → steps."""

BLOCK = 20  # once steps, then as many raw appends: about 100 ms each, so that both see the machine in one mood
BLOCKS = 15
QUIET_SECONDS = 0.1
"""Until the last result of a block is written: it waits some milliseconds for company."""

BESIDES = 2  # writes of a task that are no step's: the claim, and the end with the last answer


async def measure(cluster: Cluster, namespace: str) -> list[Figure]:
    async with seat(cluster.kubeconfig) as here:
        return [
            *await _reads(here, namespace),
            *await _slow_reads(here, namespace),
            *await _once(here, namespace),
            *await _large(here, namespace),
        ]


async def _run(here: Seat, namespace: str, name: str, instant: Instant, effect: Effect) -> None:
    """One task from its claim to its end, in this process."""
    spec = {"agentRef": {"name": "none"}, "input": name}
    manifest = await here.store.create(TASKS, new(TASKS, namespace, name, spec=spec))
    task = replace(task_view(manifest), revision="bench-revision")
    ended = await Intake(here.context, InstantRuntimes(instant, effect), task).run()
    assert ended is Ended.FINISHED, ended
    status = (await here.store.get(task_ref(namespace, name)))["status"]
    assert status["phase"] == Phase.SUCCEEDED.value, status


def _appends_per_step(here: Seat, name: str, steps: int) -> float:
    return (len(here.store.writes[name]) - BESIDES) / steps


async def _reads(here: Seat, namespace: str) -> list[Figure]:
    instant = Instant(steps=STEPS + WINDOW)
    await _run(here, namespace, "reads", instant, Effect.READ)
    gaps = [(asked - answered) * 1000 for answered, asked in zip(instant.answered, instant.asked[1:], strict=True)]
    early, late = gaps[:WINDOW], gaps[STEPS - WINDOW : STEPS + WINDOW]
    return [
        Figure(name="appends-per-read-step-0ms", value=_appends_per_step(here, "reads", instant.steps)),
        Figure(name="read-step-10", value=median(early), samples=early),
        Figure(name="read-step-500", value=median(late), samples=late),
    ]


async def _slow_reads(here: Seat, namespace: str) -> list[Figure]:
    figures = []
    for milliseconds, steps in SLOW_READS.items():
        name = f"reads-{milliseconds}ms"
        await _run(here, namespace, name, Instant(steps=steps, tool_seconds=milliseconds / 1000), Effect.READ)
        value = _appends_per_step(here, name, steps)
        figures.append(Figure(name=f"appends-per-read-step-{milliseconds}ms", value=value))
    return figures


async def _once(here: Seat, namespace: str) -> list[Figure]:
    """Blocks of once steps, with raw appends before, between and after them."""
    await _run(here, namespace, "once-trial", Instant(steps=BLOCK), Effect.ONCE)
    shape = here.store.shape("once-trial")
    plain, alike = await RawTask.create(here.store, namespace), await RawTask.create(here.store, namespace)
    plain_blocks: list[list[float]] = []
    alike_blocks: list[list[float]] = []

    async def appends(step: int) -> None:
        if step % BLOCK == 0:
            await asyncio.sleep(QUIET_SECONDS)
            kinds = [(plain_blocks, plain, STEP), (alike_blocks, alike, shape)]
            for blocks, task, carried in kinds if step % (2 * BLOCK) == 0 else reversed(kinds):  # neither always first
                blocks.append(await task.appends(BLOCK, carried))

    instant = Instant(steps=BLOCK * BLOCKS, between=appends)
    await _run(here, namespace, "once", instant, Effect.ONCE)
    # The gap from one block to the next holds the raw appends: it is in neither.
    gaps = [differences(instant.sent[block * BLOCK : (block + 1) * BLOCK]) for block in range(BLOCKS)]
    floor = [milliseconds for block in plain_blocks for milliseconds in block]
    steps = [milliseconds for block in gaps for milliseconds in block]
    ratios, alike_ratios = _ratios(gaps, plain_blocks), _ratios(gaps, alike_blocks)
    return [
        Figure(name="raw-append-p50", value=median(floor), samples=floor),
        Figure(name="raw-append-p99", value=percentile(floor, 99)),
        Figure(name="once-step-p50", value=median(steps), samples=steps),
        Figure(name="once-step-ratio", value=median(ratios), samples=ratios),
        Figure(name="once-step-ratio-alike", value=median(alike_ratios), samples=alike_ratios),
    ]


def _ratios(gaps: list[list[float]], appends: list[list[float]]) -> list[float]:
    """Of each block of steps to the raw appends on both sides of it."""
    sides = [[*before, *after] for before, after in pairwise(appends)]
    return [median(block) / median(side) for block, side in zip(gaps, sides, strict=True)]


async def _large(here: Seat, namespace: str) -> list[Figure]:
    """500 steps, each with 10 KB of real pod JSON."""
    texts = [pod_json(10 * 1024, number) for number in range(STEPS)]
    useful = sum(len(text.encode()) for text in texts)
    instant = Instant(steps=STEPS, result=lambda step: texts[step])
    await _run(here, namespace, "large", instant, Effect.READ)
    gaps = differences(instant.asked)
    part = STEPS // 5
    start, end = gaps[WINDOW : WINDOW + part], gaps[-part:]
    sizes = await _stored(here, namespace, "large")
    return [
        Figure(name="large-step-start", value=median(start), samples=start),
        Figure(name="large-step-growth", value=median(end) / median(start), samples=end),
        Figure(name="large-stored", value=sum(sizes) / useful),
        Figure(name="large-object", value=max(sizes) / 1024),
    ]


async def _stored(here: Seat, namespace: str, name: str) -> list[int]:
    """Bytes of the task's object and of all its AuraCheckpoints."""
    checkpoints = await list_all(here.store, Selection(resource=CHECKPOINTS, namespace=namespace))
    theirs = [item for item in checkpoints if item["spec"]["owner"]["name"] == name]
    return [len(json.dumps(item)) for item in (await here.store.get(task_ref(namespace, name)), *theirs)]
