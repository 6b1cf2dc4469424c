"""What tests of this project, and of agents that run on it, are made with: real servers that misbehave on demand.

Shipped, since people who write agents need them too. Production code never imports this package. Not here, since
they load HTTP servers: `proxy`, `proxy_thread` and `ledger_server`. What they need comes with the extra `testing`.
"""

from __future__ import annotations

from aura_operator.testing.clock import FakeClock, StalledError, run_virtual, virtual_time
from aura_operator.testing.faulty import Call, FaultyStore, Late, LoseAnswer, Refuse, Slow, calls
from aura_operator.testing.ledger import Ledger, LedgerLine
from aura_operator.testing.ledger_process import RunningLedger, running_ledger
from aura_operator.testing.memory import MemoryStore
from aura_operator.testing.memory_tools import MemoryTools, ToolFailedError, memory_tool
from aura_operator.testing.openai_server import FakeCall, FakeReply, OpenAIServer, openai_server
from aura_operator.testing.store_checks_writes import Ground
from aura_operator.testing.store_contract import STORE_CHECKS, check_store
from aura_operator.testing.tools_checks import TOOLS_CHECKS, ToolsGround, check_tools

__all__ = [
    "STORE_CHECKS",
    "TOOLS_CHECKS",
    "Call",
    "FakeCall",
    "FakeClock",
    "FakeReply",
    "FaultyStore",
    "Ground",
    "Late",
    "Ledger",
    "LedgerLine",
    "LoseAnswer",
    "MemoryStore",
    "MemoryTools",
    "OpenAIServer",
    "Refuse",
    "RunningLedger",
    "Slow",
    "StalledError",
    "ToolFailedError",
    "ToolsGround",
    "calls",
    "check_store",
    "check_tools",
    "memory_tool",
    "openai_server",
    "run_virtual",
    "running_ledger",
    "virtual_time",
]
