"""Points in time as the journal and Kubernetes write them. Core keeps Unix seconds; texts are RFC 3339, UTC.

Owns the two conversions, and must not read a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NewType

UnixSeconds = NewType("UnixSeconds", float)
"""Wall time: what people and other machines are told, and what the journal has."""

BootSeconds = NewType("BootSeconds", float)
"""This machine's own order of events: never jumps, goes on in suspension, means nothing elsewhere."""


def to_text(at: float) -> str:
    """RFC 3339 with milliseconds, e.g. 2026-11-29T03:40:00.125Z."""
    return (
        datetime.fromtimestamp(round(at * 1000) / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def to_micro_text(at: float) -> str:
    """RFC 3339 with microseconds: what a Lease's `renewTime` must look like (coordination.k8s.io/v1 MicroTime)."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def to_second_text(at: float) -> str:
    """RFC 3339 with whole seconds: metav1.Time, as conditions and expiry times have it."""
    return datetime.fromtimestamp(int(at), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def from_text(text: str) -> float:
    """Unix seconds of an RFC 3339 text; raises ValueError for anything else."""
    return datetime.fromisoformat(text).timestamp()


def quantised(at: float) -> float:
    """The same instant as it will be read back from the journal."""
    return round(at * 1000) / 1000
