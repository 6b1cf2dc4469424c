"""What a task runs with: made of its agent's revision, shared by the tasks that need it. docs/extending.md says how to
bring another."""

from __future__ import annotations

from aura_operator.worker.runtime.agent_runtime import AgentRuntime, Build, RuntimeSource, Secrets, build

__all__ = ["AgentRuntime", "Build", "RuntimeSource", "Secrets", "build"]
