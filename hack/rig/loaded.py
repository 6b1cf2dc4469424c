"""All that a worker or a controller imports, once this module is imported: what a fork server shares with its children.

Owns nothing else. The import starts no thread: a process with threads can't be forked safely.
"""

from __future__ import annotations

import asyncio
import gc
import threading

import pydantic_ai.models.openai  # noqa: F401 - by a worker only when an agent names it: seconds, on a busy machine

from aura_operator.agent.mcp import connection  # noqa: F401
from aura_operator.agent.models import preload
from aura_operator.cli import main  # noqa: F401
from aura_operator.controller import controller, watching  # noqa: F401
from aura_operator.process import probes  # noqa: F401
from aura_operator.worker.runtime import pool  # noqa: F401

asyncio.run(preload.load())
preload.load_usual_providers()
gc.freeze()  # a child's collector leaves alone what all share
_threads = threading.enumerate()
assert len(_threads) == 1, f"a process with threads can't be forked safely: {_threads}"
