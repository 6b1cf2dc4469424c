"""Journals whose fields were changed to other types: each is told as damaged or newer, or read; none crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from aura_operator.core.journal import head_of
from aura_operator.errors import JournalError
from aura_operator.store.resources import TASKS, new
from aura_operator.store.view import task_view
from aura_operator.testing.clock import FakeClock
from aura_operator.testing.memory import MemoryStore
from aura_operator.worker.recall import recall

LINES = (Path(__file__).parents[1] / "core" / "golden" / "schema-2.jsonl").read_text().splitlines()
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


async def read(lines: list[str]) -> None:
    journal = {"schema": 2, "next": len(lines), "head": head_of(lines), "entries": lines}
    spec = {"agentRef": {"name": "sre"}, "input": "fix it"}
    task = new(TASKS, "n", "golden", spec=spec, status={"phase": "Running", "epoch": 9, "run": "run-2"})
    task["metadata"] |= {"uid": "u", "creationTimestamp": "2026-12-01T00:00:00Z"}
    task["status"]["journal"] = journal
    clock = FakeClock()
    await recall(MemoryStore(clock), clock, task_view(task))


@pytest.mark.behaviour(14)
@pytest.mark.parametrize("place", range(len(LINES)))
def test_no_line_of_another_shape_is_more_than_a_journal_error(place: int) -> None:
    async def all_of_them() -> int:
        told = 0
        for other in changed(orjson.loads(LINES[place])):
            try:
                await read([*LINES[:place], orjson.dumps(other).decode(), *LINES[place + 1 :]])
            except JournalError:
                told += 1
        return told

    assert asyncio.run(all_of_them()) > 10
