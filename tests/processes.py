"""Where end-to-end tests get processes from: the rig, which demo and benchmarks share (hack/rig/processes.py)."""

from __future__ import annotations

from hack.rig.processes import Process, Processes

__all__ = ["Process", "Processes"]
