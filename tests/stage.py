"""Where end-to-end tests get their stage from: the rig, which demo and benchmarks share (hack/rig/stage.py)."""

from __future__ import annotations

from hack.rig.stage import APPROVER, ECHO, POLL_SECONDS, Stage, calls, ended, says, started
from hack.rig.waiting import until

__all__ = ["APPROVER", "ECHO", "POLL_SECONDS", "Stage", "calls", "ended", "says", "started", "until"]
