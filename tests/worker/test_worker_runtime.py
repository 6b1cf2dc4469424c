"""The tools of a runtime are listed once for all who ask at the same time; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from aura_operator.agent.models.client import ModelClient
from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.specs import ToolCall
from aura_operator.api.agent import AgentSpec
from aura_operator.core.limits import Limits
from aura_operator.errors import ToolServerError
from aura_operator.testing.clock import virtual_time
from aura_operator.testing.memory_tools import MemoryTools
from aura_operator.worker.runtime.agent_runtime import AgentRuntime


class SlowTools(MemoryTools):
    """Tools whose server takes half a minute to say that it is down, or to be there."""

    def __init__(self) -> None:
        async def perform(call: ToolCall) -> str:
            return ""

        super().__init__((), perform)
        self.starts = 0
        self.down = True

    async def start(self) -> None:
        self.starts += 1
        await asyncio.sleep(30)
        if self.down:
            raise ToolServerError("MCP server 'gone' can't be reached")
        await super().start()


def runtime(tools: SlowTools) -> AgentRuntime:
    return AgentRuntime(
        spec=AgentSpec.model_validate({"model": {"name": "scripted:none"}}),
        model=ModelClient(ModelSettings(name="scripted:none")),
        toolbox=tools,
        rules=(),
        limits=Limits(),
        server_timeouts={},
    )


@pytest.mark.behaviour(43)
@virtual_time
async def test_all_who_ask_at_once_hear_the_same_and_the_next_one_tries_again() -> None:
    tools = SlowTools()
    shared = runtime(tools)
    loop = asyncio.get_running_loop()
    began = loop.time()
    ends = await asyncio.gather(*(shared.tools() for _ in range(8)), return_exceptions=True)
    assert all(isinstance(end, ToolServerError) for end in ends) and tools.starts == 1
    assert loop.time() - began == pytest.approx(30)
    tools.down = False
    assert "sleep" in await shared.tools() and tools.starts == 2
    await shared.tools()
    assert tools.starts == 2


@virtual_time
async def test_one_who_loses_patience_takes_the_tools_from_nobody() -> None:
    tools = SlowTools()
    tools.down = False
    shared = runtime(tools)
    impatient, patient = asyncio.ensure_future(shared.tools()), asyncio.ensure_future(shared.tools())
    await asyncio.sleep(1)
    impatient.cancel()
    assert "sleep" in await patient and tools.starts == 1
