"""The effect ledger: the file in which a tool server writes down every call before it does anything.

Owns the file, the only witness that counts for "happened once". The server is in `ledger_server`, what runs it for a
test in `ledger_process`: readers of the file load neither.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUN = "aura.mezmo.com/run"
EPOCH = "aura.mezmo.com/epoch"
IDEMPOTENCY_KEY = "aura.mezmo.com/idempotencyKey"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One line. `phase` is start, end, refused (a stale epoch) or cancelled; `at` is Unix time in seconds."""

    phase: str
    tool: str
    key: str
    arguments: Mapping[str, Any]
    run: str | None
    epoch: int | None
    idempotency_key: str | None
    at: float


class Ledger:
    """The file. Appending is for the server; everybody may read at any time, also while it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, phase: str, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        """Writes a line and returns when it is on the disk."""
        line = {
            "phase": phase,
            "tool": tool,
            "key": str(arguments.get("key", "")),
            "arguments": dict(arguments),
            "run": meta.get(RUN),
            "epoch": meta.get(EPOCH),
            "idempotency_key": meta.get(IDEMPOTENCY_KEY),
            "at": time.time(),
        }
        with self.path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def lines(self) -> tuple[LedgerLine, ...]:
        """All whole lines, in order."""
        if not self.path.exists():
            return ()
        whole, _, _ = self.path.read_bytes().rpartition(b"\n")
        return tuple(LedgerLine(**json.loads(line)) for line in whole.splitlines() if line)

    def phase(self, phase: str, tool: str | None = None, key: str | None = None) -> tuple[LedgerLine, ...]:
        """The lines of one phase, of one tool or key if named."""
        return tuple(
            line for line in self.lines if line.phase == phase and tool in (None, line.tool) and key in (None, line.key)
        )

    def starts(self, tool: str | None = None, key: str | None = None) -> tuple[LedgerLine, ...]:
        """The calls that began: what "happened once" is counted in."""
        return self.phase("start", tool, key)

    def highest_epochs(self) -> dict[str, int]:
        """The highest epoch that each run has called with."""
        highest: dict[str, int] = {}
        for line in self.lines:
            if line.run is not None and line.epoch is not None:
                highest[line.run] = max(line.epoch, highest.get(line.run, 0))
        return highest
