"""Processes that outlive their starter. Owns starting, recognising and killing one; knows no Kubernetes.

A pid alone names no process: once it has ended, the number may belong to anybody. A pid with the time at which its
process started does, so both are recorded, and nothing is killed whose start time differs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.cluster.errors import ClusterError

KILL_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """One process: its pid, and when it started in the words of the operating system."""

    pid: int
    started: str

    def alive(self) -> bool:
        return _start_of(self.pid) == self.started


def start(command: list[str], *, cwd: Path, log: Path, record: Path) -> ProcessId:
    """Starts `command` in a session of its own (Ctrl-C doesn't reach it) and writes who it is to `record`.

    `log` gets what it says; what is there of an earlier process goes to a file beside it, `<log>.previous`.
    """
    if log.exists():
        log.replace(log.with_name(f"{log.name}.previous"))
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    started = _start_of(process.pid)
    # It is meant to run on when this object is gone: without a return code Popen would warn about that.
    process.returncode = 0
    identity = ProcessId(pid=process.pid, started=started or "ended at once")
    record.write_text(json.dumps(asdict(identity)))
    return identity


def recorded(record: Path) -> ProcessId | None:
    try:
        return ProcessId(**json.loads(record.read_text()))
    except FileNotFoundError:
        return None


def exists(pid: int) -> bool:
    """Whether any process has that pid, whoever owns it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def kill(identity: ProcessId) -> None:
    """Ends the process by SIGKILL and waits until it is gone. Does nothing if it has ended, whoever has its pid now."""
    try:
        # A descriptor pins the process, so that nothing can slip in between the check and the signal.
        descriptor = os.pidfd_open(identity.pid) if hasattr(os, "pidfd_open") else None
    except ProcessLookupError:
        return
    try:
        if not identity.alive():
            return
        if descriptor is not None:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        else:
            os.kill(identity.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        if descriptor is not None:
            os.close(descriptor)
    _await_end(identity)


def _await_end(identity: ProcessId) -> None:
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        _reap(identity.pid)
        if not identity.alive():
            return
        time.sleep(0.01)
    raise ClusterError(
        f"process {identity.pid} is still there {KILL_SECONDS:.0f} s after SIGKILL (the disk may hang); "
        f"look at it with `ps -p {identity.pid}` and run the same command again."
    )


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # Another program started it: that one, or init, reaps it.


def _start_of(pid: int) -> str | None:
    """When the process started; None if it has ended, a zombie included."""
    if not Path("/proc/self/stat").exists():
        shown = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        state, _, started = shown.stdout.strip().partition(" ")
        return started.strip() if started and not state.startswith("Z") else None
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in brackets, which may hold spaces: count from the last bracket.
    fields = content.rpartition(")")[2].split()
    state, started = fields[0], fields[19]
    return None if state in "ZX" else f"{_boot_id()}/{started}"


def _boot_id() -> str:
    # Start times count from boot, so after a reboot the same number can come again.
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
