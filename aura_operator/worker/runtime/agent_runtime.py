"""What a task runs with: its model, its tools, and the policies of its agent's revision.

Owns making it of a spec and the contents of Secrets. Not here: reading those and sharing it (see pool.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, assert_never

from aura_operator.agent.builtin import BUILT_IN_TOOLS
from aura_operator.agent.mcp.servers import ServerSpec, Transport
from aura_operator.agent.mcp.toolbox import Toolbox
from aura_operator.agent.models.client import ModelClient
from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.ports import Model, Tools
from aura_operator.agent.specs import ToolSpec
from aura_operator.api.agent import AgentSpec, McpServer, StdioServer, StreamableHttpServer
from aura_operator.core.effects import ToolPolicy, ToolRule, policy_for
from aura_operator.core.limits import Limits
from aura_operator.errors import ConfigurationError
from aura_operator.foreign import contained
from aura_operator.single_flight import SingleFlight


@dataclass(slots=True, kw_only=True)
class AgentRuntime:
    """The tools and the model of one agent revision; shared by the tasks that run it."""

    spec: AgentSpec
    model: Model
    toolbox: Tools
    rules: tuple[ToolRule, ...]
    limits: Limits
    server_timeouts: Mapping[str, float]
    _started: bool = False
    _starting: SingleFlight[str, None] = field(default_factory=SingleFlight)

    async def tools(self) -> Mapping[str, ToolSpec]:
        """All tools by name, built-ins too. Connects at the first call; raises ToolServerError.

        Whoever asks while that goes on gets the same end of it; one that failed is tried again by the next who asks.
        """
        if not self._started:
            await self._starting.do("tools", self._start)
        return {**BUILT_IN_TOOLS, **self.toolbox.tools}

    def policy(self, tool: ToolSpec) -> ToolPolicy:
        timeout = self.server_timeouts.get(tool.server)
        return policy_for(tool.name, self.rules, tool.hints, server_timeout_seconds=timeout)

    async def _start(self) -> None:
        with contained("connecting to the tools"):
            await self.toolbox.start()
        self._started = True

    async def aclose(self) -> None:
        """Closes both, the model too where the tools can't be. Raises what either raised, as an Exception."""
        await self._starting.cancel()
        try:
            with contained("closing the tools"):
                await self.toolbox.aclose()
        finally:
            with contained("closing the model"):
                await self.model.aclose()


class RuntimeSource(Protocol):
    """Where a worker gets what its tasks run with. `RuntimePool` is the product's; whoever embeds a worker may give it
    another, with models and tools of his own."""

    def use(self, namespace: str, revision: str) -> AbstractAsyncContextManager[AgentRuntime]:
        """The runtime of an agent's revision, for the time of the block.

        `revision` names a ControllerRevision in `namespace`. Two blocks may be given the same runtime. Entering raises
        ConfigurationError where there can be no such runtime (the task fails with its reason), any other AuraError
        where there is none now. It never waits without end, and may be cancelled.
        """
        ...


Secrets = Mapping[str, Mapping[str, str]]
"""The contents of the Secrets that an agent names, as text: Secret name, then key."""

Build = Callable[[AgentSpec, Secrets], AgentRuntime]
"""Makes the runtime of an agent revision, without waiting for anything.

Raises ConfigurationError where there can be no such runtime: the task fails with its reason. Whatever else it raises
is taken for passing.
"""


def build(spec: AgentSpec, secrets: Secrets) -> AgentRuntime:
    """The product's Build: the model by its provider, the tools by MCP."""
    model = spec.model
    key = model.api_key_secret_ref
    if key is not None and key.key not in secrets[key.name]:
        raise ConfigurationError(f"Secret {key.name} has no key {key.key!r}", reason="SecretNotFound")
    settings = ModelSettings(
        name=model.name,
        base_url=model.base_url,
        api_key=secrets[key.name][key.key] if key is not None else None,
        settings=dict(model.settings or {}),
        timeout_seconds=float(model.timeout_seconds),
    )
    return AgentRuntime(
        spec=spec,
        model=ModelClient(settings),
        toolbox=Toolbox(tuple(_server(server, secrets) for server in spec.mcp_servers)),
        rules=spec.core_rules(),
        limits=Limits(
            turns=spec.limits.turns,
            tokens=spec.limits.tokens,
            recoveries=spec.limits.recoveries,
            model_retries=model.retries,
            expires_after_seconds=float(spec.approvals.expires_after_seconds),
        ),
        server_timeouts={
            server.name: float(server.timeout_seconds) for server in spec.mcp_servers if server.timeout_seconds
        },
    )


def _server(server: McpServer, secrets: Secrets) -> ServerSpec:
    match server:
        case StreamableHttpServer():
            headers = secrets[server.headers_secret_ref.name] if server.headers_secret_ref else {}
            return ServerSpec(
                name=server.name,
                transport=Transport.STREAMABLE_HTTP,
                url=server.url,
                headers=headers,
                trust_hints=server.trust_hints,
            )
        case StdioServer():
            return ServerSpec(
                name=server.name,
                transport=Transport.STDIO,
                command=server.command,
                args=server.args,
                env={variable.name: variable.value for variable in server.env},
                trust_hints=server.trust_hints,
            )
    assert_never(server)
