"""Tools without servers: each call runs a coroutine of this process. Owns the fake of the tools port.

It passes the checks of tools_checks.py, as MCP's implementation does. Time is the loop's, so it may be virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from aura_operator.agent import arguments as argument_check
from aura_operator.agent.outcomes import finished
from aura_operator.agent.ports import BeforeSend
from aura_operator.agent.redaction import Redactor
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec
from aura_operator.core.digests import schema_digest
from aura_operator.core.entries import Outcome

_ANYTHING: Mapping[str, Any] = {"type": "object"}
_NO_SECRETS = Redactor(())


class ToolFailedError(Exception):
    """Raised by a `perform`: the tool ran and failed, and its words are for the model."""


def memory_tool(name: str, input_schema: Mapping[str, Any] = _ANYTHING) -> ToolSpec:
    """A tool of MemoryTools. `name` is `<server>__<tool>`."""
    return ToolSpec(
        name=name,
        server=name.partition("__")[0],
        description="",
        input_schema=input_schema,
        schema_digest=schema_digest(name, input_schema),
    )


class MemoryTools:
    """`perform` does what a call asks for and returns its text. It may raise ToolFailedError, take long, or never end.

    `received` has every call that was sent, in order.
    """

    def __init__(self, tools: Iterable[ToolSpec], perform: Callable[[ToolCall], Awaitable[str]]) -> None:
        self._offered = {tool.name: tool for tool in tools}
        self._listed: dict[str, ToolSpec] = {}
        self._perform = perform
        self._running: set[asyncio.Task[str]] = set()
        self.received: list[ToolCall] = []

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        return MappingProxyType(self._listed)

    async def start(self) -> None:
        await asyncio.sleep(0)
        self._listed = dict(self._offered)

    async def fresh(self, tool: str) -> ToolSpec | None:
        await self.start()
        return self._listed.get(tool)

    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        def outcome(status: Outcome, text: str) -> ToolOutcome:
            return finished(status, text, _NO_SECRETS, call.limit_bytes)

        spec = self._listed.get(call.tool)
        if spec is None:
            return outcome(Outcome.ERROR, argument_check.unknown_tool(call.tool, self._listed))
        problem = argument_check.check(call.arguments, spec)
        if problem is not None:
            return outcome(Outcome.ERROR, problem)
        working: asyncio.Task[str] | None = None
        limit = asyncio.timeout(call.timeout_seconds)
        try:
            async with limit:
                await before_send()
                self.received.append(call)
                working = asyncio.ensure_future(self._perform(call))
                self._running.add(working)
                await asyncio.wait({working})
                return outcome(Outcome.OK, working.result())
        except ToolFailedError as error:
            return outcome(Outcome.ERROR, str(error))
        except TimeoutError:
            if not limit.expired():
                raise  # what `before_send` raises passes through, this too
            if working is None:
                return outcome(Outcome.NOT_SENT, "the call's time was up before it could be sent")
            return outcome(Outcome.UNKNOWN, "no answer within the call's time: it may or may not have happened")
        except asyncio.CancelledError:
            if working is None or not working.cancelled():
                raise
            return outcome(Outcome.UNKNOWN, "the connection was closed: it may or may not have happened")
        finally:
            if working is not None:
                working.cancel()
                self._running.discard(working)

    async def aclose(self) -> None:
        for working in self._running:
            working.cancel()
        await asyncio.sleep(0)
