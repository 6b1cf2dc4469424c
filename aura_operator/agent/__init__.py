"""Performs commands: model calls through pydantic-ai, tool calls through MCP. Knows no Kubernetes, no journal."""
