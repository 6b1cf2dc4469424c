"""The tools port keeps its word: MCP's implementation on each transport, the fake in memory, and no broken one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.agent.ports import BeforeSend
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec
from aura_operator.core.entries import Outcome
from aura_operator.errors import FencedError
from aura_operator.testing.clock import run_virtual, virtual_time
from aura_operator.testing.ledger import IDEMPOTENCY_KEY, Ledger
from aura_operator.testing.ledger_process import RunningLedger
from aura_operator.testing.memory_tools import MemoryTools, ToolFailedError, memory_tool
from aura_operator.testing.tools_checks import TOOLS_CHECKS, Check, ToolsGround, check_tools
from tests.agent.desk import http_spec, stdio_spec


def ground_over(toolbox: Toolbox, ledger: Ledger) -> ToolsGround:
    return ToolsGround(
        tools=toolbox,
        tool="ledger__once",
        answering=json.dumps({"key": "k"}),
        failing=json.dumps({"key": "k", "fail": True}),
        hanging=json.dumps({"key": "k", "hang": True}),
        large=json.dumps({"key": "k", "bytes": 5000}),
        unfit=json.dumps({"key": 7}),
        received=lambda: [str(line.idempotency_key) for line in ledger.starts()],
    )


@pytest.fixture(params=["http", "older", "stdio"])
async def ground(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ToolsGround]:
    if request.param == "stdio":
        ledger = Ledger(tmp_path / "stdio.jsonl")
        toolbox = Toolbox((stdio_spec(ledger.path),))
    else:
        server: RunningLedger = request.getfixturevalue(f"{request.param}_ledger")
        ledger, toolbox = server.ledger, Toolbox((http_spec(server.url),))
    yield ground_over(toolbox, ledger)
    await toolbox.aclose()


@pytest.mark.parametrize("check", TOOLS_CHECKS, ids=lambda check: check.__name__)
async def test_mcp_servers_pass(ground: ToolsGround, check: Check) -> None:
    await check(ground)


SCHEMA = {"type": "object", "properties": {"do": {"enum": ["answer", "fail", "hang", "large"]}}, "required": ["do"]}


async def perform(call: ToolCall) -> str:
    match json.loads(call.arguments)["do"]:
        case "fail":
            raise ToolFailedError("failed as asked")
        case "hang":
            await asyncio.Event().wait()
        case "large":
            return "line\n" * 1000
    return "done"


def in_memory(kind: type[MemoryTools]) -> Callable[[], Any]:
    @asynccontextmanager
    async def make() -> AsyncIterator[ToolsGround]:
        tools = kind([memory_tool("m__tool", SCHEMA)], perform)
        arguments = {name: json.dumps({"do": name}) for name in ("answer", "fail", "hang", "large", "dance")}
        yield ToolsGround(
            tools=tools,
            tool="m__tool",
            answering=arguments["answer"],
            failing=arguments["fail"],
            hanging=arguments["hang"],
            large=arguments["large"],
            unfit=arguments["dance"],
            received=lambda: [call.meta[IDEMPOTENCY_KEY] for call in tools.received],
        )
        await tools.aclose()

    return make


@virtual_time
async def test_the_fake_in_memory_passes() -> None:
    await check_tools(in_memory(MemoryTools))


# Broken ones


class Repeats(MemoryTools):
    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        await super().call(call, before_send)
        return await super().call(call, before_send)


class AsksAfterwards(MemoryTools):
    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        async def nothing() -> None: ...

        outcome = await super().call(call, nothing)
        await before_send()
        return outcome


class SwallowsRefusals(MemoryTools):
    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        try:
            return await super().call(call, before_send)
        except FencedError as error:
            return ToolOutcome(status=Outcome.NOT_SENT, text=str(error), size_bytes=0)


class CallsDoubtAnError(MemoryTools):
    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        outcome = await super().call(call, before_send)
        return replace(outcome, status=Outcome.ERROR) if outcome.status is Outcome.UNKNOWN else outcome


class ForgetsItsTime(MemoryTools):
    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        return await super().call(replace(call, timeout_seconds=3600.0), before_send)


class CutsNothing(MemoryTools):
    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        return await super().call(replace(call, limit_bytes=10**9), before_send)


class OneAtATime(MemoryTools):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._turn = asyncio.Lock()

    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        async with self._turn:
            return await super().call(call, before_send)


class LeavesCallsBehind(MemoryTools):
    async def aclose(self) -> None: ...


class HasShortNames(MemoryTools):
    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return {name.partition("__")[2]: tool for name, tool in super().tools.items()}


BROKEN = (
    (Repeats, "a_call_reaches_the_tool_once_with_its_key_after_the_last_check"),
    (AsksAfterwards, "a_call_reaches_the_tool_once_with_its_key_after_the_last_check"),
    (SwallowsRefusals, "what_the_last_check_raises_passes_through_and_nothing_is_sent"),
    (CallsDoubtAnError, "a_tool_that_never_answers_is_in_doubt_within_its_time"),
    (ForgetsItsTime, "a_tool_that_never_answers_is_in_doubt_within_its_time"),
    (OneAtATime, "one_call_in_trouble_holds_up_no_other"),
    (CutsNothing, "a_text_is_cut_to_the_limit_and_its_size_is_told"),
    (LeavesCallsBehind, "closing_ends_what_runs_and_may_be_done_twice"),
    (HasShortNames, "tools_have_names_that_every_provider_takes"),
)


@pytest.mark.parametrize(("kind", "check"), BROKEN, ids=lambda value: getattr(value, "__name__", None))
def test_broken_tools_fail_the_check_that_is_about_it(kind: type[MemoryTools], check: str) -> None:
    with pytest.raises(AssertionError) as caught:
        run_virtual(check_tools(in_memory(kind)))

    assert caught.value.__notes__ == [f"tools check: {check}"]
