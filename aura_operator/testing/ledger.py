"""The effect ledger: a tool server that writes down every call before it does anything, and the reader of that file.

Owns the file and the process; the tools are in `ledger_server`. The only witness that counts for "happened once".
`python -m aura_operator.testing.ledger --file FILE [--port 0] [--check-epoch] [--sessions] [--stdio]`
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

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


class RunningLedger:
    """A ledger server in a process of its own. It can be killed, stopped and started again at the same address."""

    def __init__(self, ledger: Ledger, *options: str) -> None:
        self.ledger = ledger
        self._options = options
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    @property
    def pid(self) -> int:
        """The process that serves now."""
        assert self._process is not None, "the ledger isn't running"
        return self._process.pid

    def start(self) -> None:
        """Starts it and returns when it listens."""
        command = [sys.executable, "-m", __name__ if __name__ != "__main__" else "aura_operator.testing.ledger"]
        command += ["--file", str(self.ledger.path), "--port", str(self._port), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.url = json.loads(_first_line(self._process.stdout))["url"]
        self._port = int(self.url.rpartition(":")[2].partition("/")[0])

    def afresh(self) -> RunningLedger:
        """The same server with an empty ledger, running again if it had died."""
        if self._process is None or self._process.poll() is not None:
            self._end(signal.SIGKILL)
            self.start()
        self.ledger.path.unlink(missing_ok=True)
        return self

    def kill(self) -> None:
        """kill -9, and waits for the end."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ends it in good order, if it runs at all."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)  # a test may have frozen it
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None


@contextmanager
def running_ledger(path: Path, *options: str) -> Iterator[RunningLedger]:
    """A ledger over HTTP for as long as the block lasts. `options` are those of the command line."""
    server = RunningLedger(Ledger(path), *options)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _first_line(output: IO[bytes] | None) -> bytes:
    assert output is not None
    line = output.readline()
    if not line:
        raise RuntimeError("the ledger ended before it listened: its standard error says why")
    return line


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A tool server that writes down every call before it acts.")
    parser.add_argument("--file", type=Path, required=True, help="the ledger, one JSON line per event")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument(
        "--check-epoch", action="store_true", help="refuse callers that lost their task to a later epoch"
    )
    parser.add_argument(
        "--sessions", action="store_true", help="be an older server: with MCP sessions, which a restart loses"
    )
    parser.add_argument("--stdio", action="store_true", help="speak on the standard streams instead of HTTP")
    options = parser.parse_args()

    # Not at the top: readers of the file need none of it, and it takes half a second to load.
    from aura_operator.testing.ledger_server import serve_http, serve_stdio

    ledger = Ledger(options.file)
    if options.stdio:
        serve_stdio(ledger, check_epoch=options.check_epoch)
    else:
        serve_http(ledger, options.port, check_epoch=options.check_epoch, sessions=options.sessions)


if __name__ == "__main__":
    main()
