"""The ledger's server as a process beside a test. Owns starting, killing and ending it, not what it serves."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from aura_operator.testing.ledger import Ledger


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
        command = [sys.executable, "-m", "aura_operator.testing.ledger_server"]
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
