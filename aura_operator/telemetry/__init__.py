"""Structured logs: one event a line, with task, epoch and worker; never a secret, a prompt or a tool result at info."""
