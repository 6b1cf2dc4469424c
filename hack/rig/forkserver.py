"""Forks `aura` processes from one that has loaded everything: a start takes milliseconds instead of seconds.

Owns the fork server and what is seen of a child. What is forked is the shipped command with its own process id,
connections and signal handlers; only the imports are shared. The server is the standard library's: it forks before any
thread exists, reaps its children, tells how they ended, and ends when whoever started it is gone.
"""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # prctl(2)


class Forked:
    """A child, as subprocess.Popen would show it."""

    def __init__(self, process: ForkServerProcess) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, or minus the number of the signal that ended it. Raises TimeoutError."""
        self._process.join(timeout)
        code = self.poll()
        if code is None:
            raise TimeoutError(f"process {self.pid} did not end within {timeout} s")
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(arguments: Sequence[str], log: Path) -> Forked:
    """Starts `aura ARGUMENTS` with its output in `log`."""
    process = _context().Process(target=_become, args=(list(arguments), str(log)), daemon=True)
    process.start()
    return Forked(process)


@functools.cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hack.rig.loaded"])
    return context


def _become(arguments: list[str], log: str) -> None:
    """Runs the command in the child; ends the process with the command's own exit code."""
    from aura_operator.cli import main as command

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for name in [name for name in os.environ if name.startswith("KUBE")]:
        del os.environ[name]
    command(arguments, prog_name="aura")
