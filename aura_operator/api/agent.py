"""AuraAgent: the model, tools, approvals and limits that tasks run with.

Owns the shape, and what it means in core's words; which tool then needs what is decided in core/effects.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue

from aura_operator.api.resource import (
    Column,
    Conditions,
    Count,
    Definition,
    LocalRef,
    Model,
    Name,
    Resource,
    SecretKeyRef,
    ToolName,
    User,
    rules,
)
from aura_operator.core import effects
from aura_operator.core.effects import Effect, OnInDoubt

# Tools are called <server>__<tool> in at most 64 characters, so a server's name must leave room and hold no "__".
ServerName = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=32)]
Seconds = Annotated[int, Field(ge=1, le=86400)]
Groups = Annotated[tuple[User, ...], Field(max_length=64)]


class ModelSpec(Model):
    """Which model answers, and how it is called."""

    name: Annotated[str, Field(min_length=3, max_length=256, pattern=r"^[^:]+:.+$")]
    """Provider and model as pydantic-ai names them, e.g. `openai-chat:gpt-5`."""
    base_url: Annotated[str, Field(max_length=2048, pattern=r"^https?://")] | None = None
    """Address of the API where it isn't the provider's own."""
    api_key_secret_ref: SecretKeyRef | None = None
    """Where the API key is. Whoever writes the agent must be allowed to read that Secret."""
    settings: Annotated[dict[str, JsonValue], Field(max_length=64)] | None = None
    """Model settings as pydantic-ai names them, e.g. `temperature`, `max_tokens`."""
    timeout_seconds: Seconds = 120
    """How long one model request may take."""
    retries: Annotated[int, Field(ge=0, le=100)] = 5
    """How often a failed model request is made again."""


class _Server(Model):
    name: ServerName
    """Short name; its tools are called `<name>__<tool>`."""
    timeout_seconds: Seconds | None = None
    """How long a call may take where `tools` says nothing."""
    trust_hints: bool = False
    """Whether the server's own annotations (read-only, idempotent) count where `tools` says nothing."""


class StreamableHttpServer(_Server):
    """A tool server that is reached over HTTP."""

    transport: Literal["StreamableHTTP"]
    """How the server is reached."""
    url: Annotated[str, Field(max_length=2048, pattern=r"^https?://")]
    """StreamableHTTP: address of the server's MCP endpoint."""
    headers_secret_ref: LocalRef | None = None
    """StreamableHTTP: a Secret whose keys and values are sent as headers. Its author must be allowed to read it."""


class EnvVar(Model):
    """One environment variable."""

    name: Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=4096)]
    """Its value; not for secrets."""


class StdioServer(_Server):
    """A tool server that runs as a child process of the worker, with the worker's rights."""

    transport: Literal["Stdio"]
    """How the server is reached."""
    command: Annotated[str, Field(min_length=1, max_length=1024)]
    """Stdio: program to run in the worker. Writing such an agent needs the verb `run-commands`."""
    args: Annotated[tuple[Annotated[str, Field(max_length=4096)], ...], Field(max_length=64)] = ()
    """Stdio: its arguments."""
    env: Annotated[tuple[EnvVar, ...], Field(max_length=64)] = ()
    """Stdio: its environment, besides PATH and HOME."""


McpServer = Annotated[StreamableHttpServer | StdioServer, Field(discriminator="transport")]


class ToolRule(Model):
    """What is declared of all tools whose name matches. The first rule that says something of a point decides."""

    match: Annotated[str, Field(min_length=1, max_length=64)]
    """Glob over `<server>__<tool>`, e.g. `k8s__pods_*`."""
    effect: Effect | None = None
    """What a call does to the world: Read (may be called again), Idempotent (again with the same key) or Once (never
    again by itself). A tool of which nothing is known is Once."""
    approval: Literal["Required", "NotRequired"] | None = None
    """Whether a person has to approve each call. Required for Once tools where nothing is said."""
    timeout_seconds: Seconds | None = None
    """How long one call may take."""
    lookup: ToolName | None = None
    """A read tool that tells, by the idempotency key, whether a call happened; it settles calls in doubt."""
    on_in_doubt: OnInDoubt | None = None
    """Who decides about a Once call that may or may not have happened: Ask (a person), TellModel, or Fail the task."""
    sensitive: bool = False
    """Whether arguments and results are kept in Secrets and shown nowhere else."""

    def core_rule(self) -> effects.ToolRule:
        """The rule as core/effects.py applies it."""
        return effects.ToolRule(
            match=self.match,
            effect=self.effect,
            approval_required=None if self.approval is None else self.approval == "Required",
            timeout_seconds=None if self.timeout_seconds is None else float(self.timeout_seconds),
            on_in_doubt=self.on_in_doubt,
            sensitive=self.sensitive,
        )


class Approvers(Model):
    """Who may decide."""

    users: Annotated[tuple[User, ...], Field(max_length=64)] = ()
    """User names as the API server knows them."""
    groups: Groups = ()
    """Groups as the API server knows them."""


class Approvals(Model):
    """How calls that need a person's approval get it."""

    approvers: Approvers = Approvers()
    """Who may decide. Nobody by default: an agent with tools that need approval is then not Ready."""
    quorum: Annotated[int, Field(ge=1, le=16)] = 1
    """How many people have to approve. One denial ends it."""
    four_eyes: bool = True
    """Whether those who asked for the task or steered it are barred from deciding."""
    expires_after_seconds: Annotated[int, Field(ge=1, le=2592000)] = 3600
    """How long an approval stays open. Unanswered means that the call isn't made."""


class SubAgent(Model):
    """Another agent that the model may give work to, as if it were a tool."""

    name: ServerName
    """Name of the tool."""
    agent_ref: LocalRef
    """The AuraAgent that does the work, in the same namespace."""
    description: Annotated[str, Field(min_length=1, max_length=1024)]
    """What the model is told about it."""


class Limits(Model):
    """Where a task ends, however it goes."""

    turns: Annotated[int, Field(ge=1, le=10000)] = 50
    """Model responses in one task."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Input and output tokens in one task; unlimited if absent."""
    # 160 KiB: the text, escaped as JSON, must still fit an AuraCheckpoint of 250 KiB.
    tool_result_bytes: Annotated[int, Field(ge=1024, le=163840)] = 131072
    """Bytes of a tool's result that the model sees; the rest is cut off, and the cut says so."""
    recoveries: Annotated[int, Field(ge=1, le=100)] = 5
    """How often in a row a task may lose its worker without progress before it fails as Poisoned."""
    children: Annotated[int, Field(ge=0, le=256)] = 16
    """Tasks that one task may give to sub-agents."""
    depth: Annotated[int, Field(ge=0, le=16)] = 3
    """How deep sub-agents may call sub-agents."""


class AgentSpec(Model):
    """What tasks of this agent run with. An edit counts for new tasks; others keep the revision they began with."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                "!has(self.mcpServers) || self.mcpServers.all(a, self.mcpServers.exists_one(b, b.name == a.name))",
                "names of mcpServers are unique",
            ),
            (
                "!has(self.subAgents) || self.subAgents.all(a, self.subAgents.exists_one(b, b.name == a.name))",
                "names of subAgents are unique",
            ),
        )
    )

    model: ModelSpec
    """Which model answers."""
    system_prompt: Annotated[str, Field(max_length=65536)] = ""
    """What the model is told before anything else."""
    mcp_servers: Annotated[tuple[McpServer, ...], Field(max_length=32)] = ()
    """Tool servers that speak the Model Context Protocol."""
    tools: Annotated[tuple[ToolRule, ...], Field(max_length=128)] = ()
    """What is declared of tools, by glob."""
    approvals: Approvals = Approvals()
    """How calls that need approval get it."""
    sub_agents: Annotated[tuple[SubAgent, ...], Field(max_length=16)] = ()
    """Other agents that this one may give work to."""
    limits: Limits = Limits()
    """Where a task ends, however it goes."""

    def core_rules(self) -> tuple[effects.ToolRule, ...]:
        """What is declared of tools, as core/effects.py applies it, in order."""
        return tuple(rule.core_rule() for rule in self.tools)

    def unsupported(self) -> str | None:
        """What the agent asks for and this version doesn't do, with the remedy; None if there is nothing.

        Whoever runs or judges an agent says it aloud: what is silently ignored would be trusted.
        """
        if self.sub_agents:
            return "this version runs no sub-agents; remove spec.subAgents from the agent"
        if any(rule.lookup is not None for rule in self.tools):
            return "this version follows no lookup tools; remove lookup from the agent's spec.tools"
        return None


class DiscoveredTool(Model):
    """A tool that was found, and what the operator takes it for."""

    name: ToolName
    """`<server>__<tool>`, or the name of a built-in tool."""
    effect: Effect
    """Read, Idempotent or Once."""
    declared: bool
    """Whether the agent declares the effect (else it is the server's hint or the default)."""
    approval: Literal["Required", "NotRequired"]
    """Whether each call needs a person."""


class AgentStatus(Model):
    """What the operator knows of the agent."""

    observed_generation: Count | None = None
    """The metadata.generation that this status speaks of."""
    revision: Name | None = None
    """The ControllerRevision that new tasks get."""
    conditions: Conditions = ()
    """`Ready`, with the reason if it isn't."""
    tools: Annotated[tuple[DiscoveredTool, ...], Field(max_length=512)] = ()
    """Tools found at the servers."""


class AuraAgent(Resource):
    """An agent: a model, the tools it may call, who approves what, and its limits. Tasks (AuraTask) run it."""

    definition: ClassVar[Definition] = Definition(
        plural="auraagents",
        short_name="ag",
        columns=(
            Column(name="Model", path=".spec.model.name"),
            Column(name="Ready", path='.status.conditions[?(@.type=="Ready")].status'),
            Column(name="Reason", path='.status.conditions[?(@.type=="Ready")].reason'),
            Column(name="Revision", path=".status.revision", wide_only=True),
            Column(name="Age", path=".metadata.creationTimestamp", type="date"),
        ),
    )

    kind: Literal["AuraAgent"] = "AuraAgent"
    spec: AgentSpec
    """What tasks of this agent run with."""
    status: AgentStatus | None = None
    """What the operator knows of the agent."""
