"""What SIGTERM and SIGINT mean to a process, from its first moment on. Owns these two signals."""

from __future__ import annotations

import asyncio
import signal
import sys
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end_at_once() -> None:
    """A signal ends the process, wherever it is: it has begun nothing yet that would have to be handed over.

    Without a handler the first process of a container wouldn't even notice SIGTERM (signal(7), pid_namespaces(7)).
    """
    for number in SIGNALS:
        signal.signal(number, _end)


def stop_orderly(stop: asyncio.Event, work: asyncio.Task[object]) -> None:
    """The first signal sets `stop`; a second one cancels `work`, for whoever won't wait for an orderly end.

    To be called again after anything that takes the signals for itself, as kopf does at its start.
    """

    def asked() -> None:
        if stop.is_set():
            work.cancel()
        stop.set()

    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, asked)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
