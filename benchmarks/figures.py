"""A figure: a value with its goal, and the samples it was made of. Owns the lines on the terminal and the JSON."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("aiohttp", "kopf", "kubernetes", "mcp", "orjson", "pydantic-ai-slim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`goal` is an upper bound in the same unit; None for a figure that only tells."""

    name: str
    value: float
    unit: str
    goal: float | None
    samples: Sequence[float] = field(default=())

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return "-"
        return "ok" if self.value <= self.goal else "short"

    def line(self) -> str:
        goal = "-" if self.goal is None else f"{self.goal:g}"
        return f"bench: {self.name} {self.value:.3f} {self.unit} goal {goal} {self.verdict}"


def percentile(samples: Sequence[float], percent: float) -> float:
    """The sample below which `percent` of the samples lie (nearest rank)."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def median(samples: Sequence[float]) -> float:
    return percentile(samples, 50)


def write(name: str, figures: Sequence[Figure], *, kubernetes: str) -> Path:
    """The results of one group with all that is needed to make them again."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    document: dict[str, Any] = {
        "command": f"python -m benchmarks {name}",
        "commit": commit,
        "python": sys.version.split()[0],
        "machine": f"{platform.system()} {platform.machine()}, {_cores()} cores",
        "kubernetes": kubernetes,
        "packages": {package: version(package) for package in PACKAGES},
        "figures": [asdict(figure) | {"verdict": figure.verdict} for figure in figures],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _cores() -> int:
    import os

    return os.cpu_count() or 0
