"""Code of others — plugins, SDKs, whoever implements a port — run so that nothing it raises ends a worker.

asyncio lets SystemExit and KeyboardInterrupt of any task end the whole loop, and takes a CancelledError for its own.
A worker runs the tasks of many, so neither may leave the place where the stranger was called. Owns that alone: what an
error means for a task is said where it is caught.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def contained(what: str) -> Iterator[None]:
    """Whatever is raised within leaves the block as an Exception, except a cancellation that somebody asked for.

    `what` begins the sentence that says so, for example "model-1-1".
    """
    try:
        yield
    except (Exception, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled this: foreign code let its own cancellation out. Taken for ours, it would start again.
        raise RuntimeError(f"{what} was cancelled from within") from error
    except BaseException as error:
        raise RuntimeError(f"{what} raised {error!r}") from error


async def in_own_thread(function: Callable[[], T], name: str) -> T:
    """Calls what may block, for ever even, in a thread of its own: it takes none from the pool that all share, and a
    process that ends doesn't wait for it. Raises what it raised, as an Exception. Cancelling gives up on its result."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def tell(settle: Callable[[], None]) -> None:
        if not outcome.done():
            settle()

    def run() -> None:
        try:
            settle = partial(outcome.set_result, function())
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            settle = partial(outcome.set_exception, _as_exception(error))
        with suppress(RuntimeError):  # the loop was closed meanwhile, so nobody waits
            loop.call_soon_threadsafe(tell, settle)

    Thread(target=run, name=name, daemon=True).start()
    return await outcome


def _as_exception(error: BaseException) -> Exception:
    # A future takes no StopIteration.
    return error if isinstance(error, Exception) and not isinstance(error, StopIteration) else RuntimeError(repr(error))
