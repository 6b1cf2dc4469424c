"""The user's cache folder, shared by all checkouts. Owns who may build into it and when something counts as built.

Knows nothing of what is built.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.progress import Progress


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "aura-operator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached(name: str, build: Callable[[Path, Progress], None], *, title: str) -> Path:
    """Returns the folder `name` of the cache, built by `build(folder, progress)` if it isn't there.

    The folder appears under its name only when the build has ended well, and one process builds while others wait.
    """
    folder = cache_folder() / name
    if folder.is_dir():
        return folder
    with Progress(title) as progress, _sole_builder(name, progress):
        if folder.is_dir():
            return folder
        scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=cache_folder()))
        try:
            build(scratch, progress)
            scratch.chmod(0o755)
            scratch.rename(folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return folder


@contextmanager
def _sole_builder(name: str, progress: Progress) -> Iterator[None]:
    # The lock file stays: removing it would let two processes hold locks on two files of one name.
    with (cache_folder() / f".{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.detail = "another process is at it; waiting for that one"
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
