"""What an `aura` process tells of itself: the JSON lines of its log, and its probes. Starts and ends nothing."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any


def events(log: Path) -> list[dict[str, Any]]:
    """The lines of a log that are JSON, in order."""
    found = []
    for line in log.read_text(errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # a library's words, or a line that is being written
    return found


def says_ready(log: Path) -> bool:
    """Whether the process that writes this log serves its probes, and /readyz agrees."""
    ports = [event["port"] for event in events(log) if event.get("event") == "probes"]
    return bool(ports) and answers(f"http://127.0.0.1:{ports[-1]}/readyz")


def answers(url: str) -> bool:
    """Whether the URL is served, with 200, within a second."""
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
