"""Tells a waiting person what is going on. Owns how that is printed (standard error), not what is done."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

QUIET_SECONDS = 2.0
"""Whatever ends sooner than this is not announced at all."""

LINE_SECONDS = 15.0
"""Between two lines where the output is no terminal, so that a log stays readable."""


class Progress:
    """Within `with Progress("building kube") as step:` prints `building kube … 12 s: <step.detail>`.

    `detail` may be set from any thread. On a terminal one line is rewritten; elsewhere a line is added now and then.
    """

    def __init__(self, title: str, *, stream: TextIO | None = None) -> None:
        self.title = title
        self.detail = ""
        self._stream = stream if stream is not None else sys.stderr
        self._started = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True)
        self._shown = False

    @property
    def elapsed_seconds(self) -> float:
        return time.monotonic() - self._started

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._shown:
            outcome = "done" if kind is None else "failed"
            self._print(f"{self.title}: {outcome} after {self._elapsed()}", last=True)

    def _report(self) -> None:
        terminal = self._stream.isatty()
        wait = QUIET_SECONDS
        while not self._over.wait(wait):
            detail = f": {self.detail}" if self.detail else ""
            self._print(f"{self.title} … {self._elapsed()}{detail}", last=not terminal)
            wait = 0.5 if terminal else LINE_SECONDS

    def _print(self, text: str, *, last: bool) -> None:
        self._shown = True
        if self._stream.isatty():
            # Clears the rest of the line: the last detail may have been longer.
            self._stream.write(f"\r{text[:118]}\x1b[K" + ("\n" if last else ""))
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def _elapsed(self) -> str:
        seconds = int(self.elapsed_seconds)
        return f"{seconds} s" if seconds < 60 else f"{seconds // 60} min {seconds % 60} s"
