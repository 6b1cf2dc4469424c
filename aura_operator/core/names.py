"""Names and keys that follow from a task and a call: approvals, timers, idempotency keys. Owns no object."""

from __future__ import annotations

PAUSE = "pause"


def approval_name(task: str, call: int, ask: int) -> str:
    """The name of the AuraApproval for the given ask (counted from 0) of a call: `<task>-<call>[-r<ask>]`.

    No two tasks share a name: a number alone would make ask 2 of call 2 of `fix` the same as call 2 of `fix-2`.
    """
    return f"{task}-{call}" if ask == 0 else f"{task}-{call}-r{ask}"


def idempotency_key(run: str, call: int, digest: str) -> str:
    """The same over all attempts at a call, a person's Retry included: `<run>/<call>/<arguments digest>`."""
    return f"{run}/{call}/{digest.removeprefix('sha256:')}"


def sleep_timer(call: int) -> str:
    """The name under which a built-in sleep stands in `waitingFor` and `fired`."""
    return f"sleep-{call}"


def settle_timer(call: int) -> str:
    """The timer until which a call in doubt may still be on its way, so that it isn't made again before."""
    return f"settle-{call}"


def model_timer(turn: int, failures: int) -> str:
    """The timer of the pause after `failures` failed model calls of one turn."""
    return f"model-{turn}-{failures}"
