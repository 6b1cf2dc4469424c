"""A model and tools that take no time, so that a step's time is the operator's own. Owns these stand-ins.

They take the adapters' places in the real runner; store, journal and API server are the real ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aura_operator.agent.models.conversation import Conversation
from aura_operator.agent.models.turn import ModelTurn, RequestedCall
from aura_operator.agent.ports import BeforeSend
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec
from aura_operator.api.agent import AgentSpec
from aura_operator.core.effects import Effect, ToolRule
from aura_operator.core.entries import Outcome, Usage
from aura_operator.core.limits import Limits
from aura_operator.core.text import dumps
from aura_operator.core.transcript import Item
from aura_operator.worker.runtime.agent_runtime import AgentRuntime

TOOL = "x__tool"


def _ok(step: int) -> str:
    return "ok"


async def _nothing(step: int) -> None: ...


@dataclass(kw_only=True)
class Instant:
    """One agent whose model calls its one tool `steps` times. Times are of the performance counter, in seconds."""

    steps: int
    tool_seconds: float = 0.0
    result: Callable[[int], str] = _ok
    """The text that a step's call answers."""
    between: Callable[[int], Awaitable[None]] = _nothing
    """Awaited before the model answers a step, the first being 0; the last answer ends the task."""
    asked: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)

    async def respond(
        self, conversation: Conversation, transcript: Sequence[Item], tools: Sequence[ToolSpec]
    ) -> ModelTurn:
        self.asked.append(time.perf_counter())
        number = len(self.asked)
        await self.between(number - 1)
        if number > self.steps:
            parts = [{"content": "done", "part_kind": "text"}]
            return ModelTurn(payload=_payload(parts), calls=(), usage=Usage(requests=1))
        arguments = dumps({"name": f"pod-{number}"})
        parts = [
            {"tool_name": TOOL, "args": arguments, "tool_call_id": f"call-{number}", "part_kind": "tool-call"},
        ]
        call = RequestedCall(part=0, tool=TOOL, arguments=arguments)
        return ModelTurn(payload=_payload(parts), calls=(call,), usage=Usage(requests=1))

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        digest = "sha256:" + "0" * 64
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return {TOOL: ToolSpec(name=TOOL, server="x", description="", input_schema=schema, schema_digest=digest)}

    async def start(self) -> None: ...

    async def fresh(self, tool: str) -> ToolSpec | None:
        return self.tools.get(tool)

    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        await before_send()
        step = len(self.sent)
        self.sent.append(time.perf_counter())
        if self.tool_seconds:
            await asyncio.sleep(self.tool_seconds)
        text = self.result(step)
        self.answered.append(time.perf_counter())
        return ToolOutcome(status=Outcome.OK, text=text, size_bytes=len(text))

    async def aclose(self) -> None: ...


def _payload(parts: list[dict[str, Any]]) -> str:
    return dumps({"fmt": "pydantic-ai/2", "parts": parts})


class InstantRuntimes:
    """Gives every task the same runtime, in the place of the worker's pool."""

    def __init__(self, instant: Instant, effect: Effect) -> None:
        spec = AgentSpec.model_validate({"model": {"name": "scripted:instant"}})
        self._runtime = AgentRuntime(
            spec=spec,
            model=instant,
            toolbox=instant,
            rules=(ToolRule(match="*", effect=effect, approval_required=False),),
            limits=Limits(turns=100_000),
            server_timeouts={},
        )

    @asynccontextmanager
    async def use(self, namespace: str, revision: str) -> AsyncIterator[AgentRuntime]:
        yield self._runtime
