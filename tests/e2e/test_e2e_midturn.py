"""A turn that is half done goes on elsewhere with what its closed calls returned, wherever those results are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.kept import KEPT, KEPT_NAMES
from tests.stage import ECHO, Stage, calls


@pytest.mark.behaviour(22, 40)
@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(("read", "rule"), KEPT, ids=KEPT_NAMES)
async def test_a_decision_finds_the_results_that_came_before_the_wait(
    read: dict[str, Any], rule: dict[str, Any], stage: Stage, approve: Callable[..., None]
) -> None:
    await stage.agent(
        [calls(("led__read", read), ("led__once", {"key": "o"})), ECHO],
        tools=[{"match": "led__once", "approval": "Required"}, {"match": "led__read", "effect": "Read", **rule}],
    )
    await stage.task()
    await stage.until_phase("one", "Waiting")
    approve("one-2")
    text = (await stage.done())["result"]["text"]
    assert "once o: done" in text and ("read r: done" in text or "0123456789abcde" in text)
