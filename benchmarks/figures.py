"""A figure: a value, the samples that it was made of, and its goal's verdict. Owns the lines on the terminal and the
JSON; the goals are in goals.py."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.goals import GOALS, Goal

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("aiohttp", "kopf", "kubernetes", "mcp", "orjson", "pydantic-ai-slim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`value` is in the unit of the goal of that name."""

    name: str
    value: float
    samples: Sequence[float] = field(default=())

    @property
    def goal(self) -> Goal:
        return GOALS[self.name]

    @property
    def verdict(self) -> str:
        if self.goal.at_most is None:
            return "-"
        return "ok" if self.value <= self.goal.at_most else "short"

    def line(self) -> str:
        goal = "-" if self.goal.at_most is None else f"{self.goal.at_most:g}"
        return f"bench: {self.name} {self.value:.3f} {self.goal.unit} goal {goal} {self.verdict}"

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.goal.unit,
            "goal": self.goal.at_most,
            "verdict": self.verdict,
            "why": self.goal.why,
            "samples": list(self.samples),
        }


def percentile(samples: Sequence[float], percent: float) -> float:
    """The sample below which `percent` of the samples lie (nearest rank)."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def median(samples: Sequence[float]) -> float:
    return percentile(samples, 50)


def differences(times: Sequence[float]) -> list[float]:
    """Milliseconds from each time, in seconds, to the next."""
    return [(later - earlier) * 1000 for earlier, later in pairwise(times)]


def write(name: str, figures: Sequence[Figure], *, kubernetes: str) -> Path:
    """The results of one group with all that is needed to make them again."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    document: dict[str, Any] = {
        "command": f"python -m benchmarks {name}",
        "commit": commit,
        "python": sys.version.split()[0],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count() or 0} cores",
        # Whoever compares two runs must know how busy the machine was: what is measured is about one core's work.
        "load_average_5_minutes": os.getloadavg()[1],
        "kubernetes": kubernetes,
        "packages": {package: version(package) for package in PACKAGES},
        "figures": [figure.document() for figure in figures],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path
