"""Python with the packages that a container has, and no others: what a process weighs depends on it.

Owns making that environment, once for each lock file, and starting `aura` in it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.cluster.cache import cached
from hack.progress import Progress
from hack.rig.processes import Launch, Started

CHECKOUT = Path(__file__).parents[1]
LOCK = CHECKOUT / "requirements" / "runtime.txt"


def python() -> Path:
    """The interpreter of an environment of requirements/runtime.txt; makes it where it isn't in the user's cache."""
    digest = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return cached(f"runtime-{digest}", _make, title="installing requirements/runtime.txt") / "bin" / "python"


def launch(interpreter: Path) -> Launch:
    """Starts the checkout's `aura` with that interpreter. The checkout's metadata names the model providers."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}

    def start(arguments: Sequence[str], log: Path) -> Started:
        command = [str(interpreter), "-m", "aura_operator.cli", *arguments]
        with log.open("wb") as output:
            return subprocess.Popen(command, env=environment, stdout=output, stderr=output)

    return start


def _make(folder: Path, progress: Progress) -> None:
    # Byte code at once, as in an image: compiling at the first start would stand in the figures.
    interpreter = str(folder / "bin" / "python")
    locked = ("--require-hashes", "--requirement", str(LOCK))
    uv = shutil.which("uv")
    if uv is not None:
        _run(uv, "venv", "--quiet", "--python", sys.executable, str(folder))
        progress.detail = "packages"
        _run(uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", interpreter, *locked)
    else:
        _run(sys.executable, "-m", "venv", str(folder))
        progress.detail = "packages"
        _run(interpreter, "-m", "pip", "install", "--quiet", *locked)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
