"""Forks `aura` processes from one that has loaded everything: a start takes milliseconds instead of seconds.

Owns the parent process and what a test sees of a child: its id, its signals, its end. What is forked is the shipped
command with its own process id, connections and signal handlers; only the imports are shared.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
POLL_SECONDS = 0.005
_PR_SET_PDEATHSIG = 1


class Zygote:
    """The parent. It ends, and all its children with it, when the test session's end of its input closes."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.zygote"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self._asking = threading.Lock()
        atexit.register(self.end)

    def fork(self, arguments: Sequence[str], log: Path) -> Forked:
        """Starts `aura ARGUMENTS` with its output in `log`."""
        return Forked(self, int(self.ask({"arguments": list(arguments), "log": str(log)})))

    def ask(self, request: dict[str, Any]) -> Any:
        with self._asking:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


@functools.cache
def zygote() -> Zygote:
    """The one of this session."""
    return Zygote()


class Forked:
    """A child, as subprocess.Popen would show it."""

    def __init__(self, parent: Zygote, pid: int) -> None:
        self._parent = parent
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._parent.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, or minus the number of the signal that ended it. Raises TimeoutError."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} did not end within {timeout} s")
            time.sleep(POLL_SECONDS)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        # Nobody but `poll` reaps it, so until then the id is its own.
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


# The parent's own side


def main() -> None:
    """Answers requests, one JSON line each, until the input ends."""
    _load()
    children: set[int] = set()
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            children.discard(pid)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                _become(request["arguments"], request["log"])
            children.add(answer)
        output.write(json.dumps(answer) + "\n")
        output.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _load() -> None:
    from aura_operator.agent.mcp import connection  # noqa: F401
    from aura_operator.agent.models import preload
    from aura_operator.cli import main as command  # noqa: F401
    from aura_operator.controller import controller  # noqa: F401
    from aura_operator.process import probes  # noqa: F401
    from aura_operator.worker import worker  # noqa: F401

    asyncio.run(preload.load())
    preload.load_usual_providers()
    import_module("pydantic_ai.models.openai")  # by a worker only when an agent names it: seconds, on a busy machine
    gc.freeze()  # a child's collector leaves what all share alone
    threads = threading.enumerate()
    assert len(threads) == 1, f"a process with threads can't be forked safely: {threads}"


def _become(arguments: list[str], log: str) -> None:
    """Runs the command in the child; never returns."""
    code = 1
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for name in [name for name in os.environ if name.startswith("KUBE")]:
            del os.environ[name]
        from aura_operator.cli import main as command

        command(arguments, prog_name="aura")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the process ends here, and its log says why
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
