"""Journals whose fields were changed to other types: each is told as damaged or newer, or read; none crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from aura_operator.core.journal import head_of
from aura_operator.errors import DamagedJournalError, JournalError
from aura_operator.store.resources import TASKS, new
from aura_operator.store.view import task_view
from aura_operator.testing.clock import FakeClock
from aura_operator.testing.memory import MemoryStore
from aura_operator.worker.task.recall import recall

GOLDEN = Path(__file__).parents[1] / "core" / "golden"
RUNS = {"schema-1": "run-1", "schema-2": "run-2"}
LINES = {name: (GOLDEN / f"{name}.jsonl").read_text().splitlines() for name in RUNS}
ODD: tuple[Any, ...] = (None, True, -1, 1.5, 10**18, "", "x", [], [1], {}, {"a": 1})


def changed(value: Any) -> Iterator[Any]:
    """The value with one thing in it replaced, or left out; every place in turn."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {key: kept for key, kept in value.items() if key != name}
            for other in (*ODD, *changed(inner)):
                yield {**value, name: other}
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for other in (*ODD, *changed(inner)):
                yield [*value[:place], other, *value[place + 1 :]]


async def read(run: str, lines: list[str]) -> None:
    journal = {"schema": 2, "next": len(lines), "head": head_of(lines), "entries": lines}
    spec = {"agentRef": {"name": "sre"}, "input": "fix it"}
    task = new(TASKS, "n", "golden", spec=spec, status={"phase": "Running", "epoch": 9, "run": run})
    task["metadata"] |= {"uid": "u", "creationTimestamp": "2026-12-01T00:00:00Z"}
    task["status"]["journal"] = journal
    clock = FakeClock()
    await recall(MemoryStore(clock), clock, task_view(task))


@pytest.mark.behaviour(14)
@pytest.mark.parametrize(("name", "place"), [(name, place) for name in RUNS for place in range(len(LINES[name]))])
def test_no_line_of_another_shape_is_more_than_a_journal_error(name: str, place: int) -> None:
    lines, run = LINES[name], RUNS[name]

    async def all_of_them() -> int:
        told = 0
        for other in changed(orjson.loads(lines[place])):
            try:
                await read(run, [*lines[:place], orjson.dumps(other).decode(), *lines[place + 1 :]])
            except JournalError:
                told += 1
        return told

    assert asyncio.run(all_of_them()) > 10


def test_as_they_were_written_they_are_read() -> None:
    asyncio.run(read(RUNS["schema-2"], LINES["schema-2"]))
    with pytest.raises(DamagedJournalError, match="AuraCheckpoint n/golden-payload, a part of the journal, is gone"):
        asyncio.run(read(RUNS["schema-1"], LINES["schema-1"]))  # its large payloads never were anywhere
