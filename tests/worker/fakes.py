"""The agent that tests of a worker run: a model that follows a program, and tools that leave lines in a ledger.

Owns these fakes of the two ports. They know of the world only what it tells them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

from aura_operator.agent.models import reply
from aura_operator.agent.models.conversation import Conversation
from aura_operator.agent.models.turn import ModelTurn
from aura_operator.agent.ports import BeforeSend
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec
from aura_operator.core.effects import Effect, ToolRule
from aura_operator.core.entries import Usage
from aura_operator.core.transcript import Item, ModelReply
from aura_operator.testing.ledger import EPOCH, IDEMPOTENCY_KEY
from aura_operator.testing.memory_tools import MemoryTools, memory_tool

if TYPE_CHECKING:
    from tests.worker.world import Life, World

MODEL_SPEC = {"name": "scripted:none"}
AGENT_SPEC: dict[str, Any] = {"model": MODEL_SPEC, "approvals": {"approvers": {"users": ["bob"]}, "fourEyes": False}}
RULES = (
    ToolRule(match="s__read", effect=Effect.READ),
    ToolRule(match="s__idempotent", effect=Effect.IDEMPOTENT, approval_required=False),
    ToolRule(match="s__once", effect=Effect.ONCE, approval_required=False),
    ToolRule(match="s__approved", effect=Effect.ONCE, approval_required=True),
)
TOOLS = tuple(memory_tool(rule.match) for rule in RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One call that reached the tool server."""

    tool: str
    key: str
    epoch: int
    life: int


class ProgramModel:
    """Says the next turn of the program; how far it is stands in the transcript."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def respond(
        self, conversation: Conversation, transcript: Sequence[Item], tools: Sequence[ToolSpec]
    ) -> ModelTurn:
        conversation.messages(transcript)  # refuses a journal that makes no conversation
        await self._world.clock.sleep(0.5)
        number = sum(isinstance(item, ModelReply) for item in transcript)
        turn = self._world.turns[number] if number < len(self._world.turns) else ()
        parts: list[TextPart | ToolCallPart] = [
            ToolCallPart(tool_name=tool, args=f'{{"turn":{number}}}' if tool != "sleep" else '{"seconds":60}')
            for tool in turn
        ]
        response = ModelResponse(parts=parts or [TextPart("done")])
        return ModelTurn(
            payload=reply.dump(response),
            calls=reply.calls_of(response.parts),
            usage=Usage(requests=1),
        )

    async def aclose(self) -> None: ...


class LedgerTools:
    """Tools whose only effect is a line in the ledger."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._inner = MemoryTools(TOOLS, self._perform)

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return self._inner.tools

    async def start(self) -> None:
        await self._inner.start()

    async def fresh(self, tool: str) -> ToolSpec | None:
        return await self._inner.fresh(tool)

    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        await self._life.point(f"before sending {call.tool}")
        return await self._inner.call(call, before_send)

    async def _perform(self, call: ToolCall) -> str:
        life = self._life
        key, epoch = call.meta[IDEMPOTENCY_KEY], call.meta[EPOCH]
        life.world.ledger.append(Line(tool=call.tool, key=key, epoch=epoch, life=life.number))
        await life.point(f"in {call.tool}")
        await life.world.clock.sleep(life.world.tool_seconds)
        await life.point(f"after {call.tool}")
        return f"{call.tool} {call.arguments}".ljust(life.world.text_bytes)

    async def aclose(self) -> None:
        await self._inner.aclose()
