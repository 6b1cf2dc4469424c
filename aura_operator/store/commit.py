"""Sends a Write until it is known whether it landed. This is where every doubt about a write ends.

An answer that was lost and a test that failed are the same question: read (by quorum) and look. What was refused for
its content fails at once; what was refused for now is sent again, byte for byte, until the right to it must be missing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import structlog

from aura_operator.clock import Clock
from aura_operator.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionFailedError,
    RefusedError,
    StoreError,
    UnavailableError,
)
from aura_operator.store.interface import Op, Store
from aura_operator.store.resources import Manifest, Ref
from aura_operator.store.writes import Write

log = structlog.get_logger()

FIRST_DELAY_SECONDS = 0.05
LONGEST_DELAY_SECONDS = 2.0
FIRST_LOGGED_SECONDS = 0.8
RIGHTS_SECONDS = 180.0  # rights that have been missing for this time will not come back without a person


async def commit(store: Store, write: Write, clock: Clock, *, refused_seconds: float = RIGHTS_SECONDS) -> Manifest:
    """The object after the write. Waits out outages for as long as the caller lets it.

    Raises ConflictError if the write can't land any more (its message says what is there now), NotFoundError if the
    object is gone, ContentRejectedError if the content is at fault, RefusedError if it was refused for too long.
    """
    delay = Backoff(clock, about=f"{write.name} of {write.ref}", refused_seconds=refused_seconds)
    while True:
        try:
            return await store.patch(write.ref, write.ops, subresource="status")
        except (PreconditionFailedError, OutcomeUnknownError) as error:
            manifest = await get_retrying(store, write.ref, clock, refused_seconds=refused_seconds)
            if not _is_that_object(write.ops, manifest):
                raise NotFoundError(f"{write.name} of {write.ref}: it was deleted, and another has its name") from error
            if write.landed(manifest):
                return manifest
            if not tests_hold(write.ops, manifest):
                raise ConflictError(f"{write.name} of {write.ref} came too late: {describe(manifest)}") from error
            # Not there, and still possible. If the first request arrives after all, the second one's tests fail.
            await delay.wait(error)
        except (UnavailableError, ForbiddenError) as error:
            await delay.wait(error)


async def try_commit(store: Store, write: Write, clock: Clock) -> Manifest | None:
    """The same where coming too late is no fault: None, and a line in the log, if the object has moved on or is gone.

    Raises ContentRejectedError.
    """
    try:
        return await commit(store, write, clock)
    except (ConflictError, NotFoundError) as error:
        log.info("not written", write=write.name, object=str(write.ref), why=str(error))
        return None


async def get_retrying(
    store: Store,
    ref: Ref,
    clock: Clock,
    *,
    within_seconds: float | None = None,
    refused_seconds: float = RIGHTS_SECONDS,
) -> Manifest:
    """A quorum read that waits out outages, for `within_seconds` at most (None: without end).

    Raises NotFoundError, RefusedError once it has been refused for `refused_seconds`, and UnavailableError when its
    time is up; both of these name the object and quote the server.
    """
    delay = Backoff(clock, about=str(ref), refused_seconds=refused_seconds)
    last: StoreError | None = None
    limit = asyncio.timeout(within_seconds)
    try:
        async with limit:
            while True:
                try:
                    return await store.get(ref)
                except (OutcomeUnknownError, UnavailableError, ForbiddenError) as error:
                    last = error
                    await delay.wait(error)
    except TimeoutError:
        if not limit.expired():
            raise
        said = last if last is not None else "the API server doesn't answer"
        raise UnavailableError(f"{ref} can't be read, for {within_seconds:g} s now: {said}") from last


class Backoff:
    """Waits longer each time, up to two seconds; a server's own Retry-After counts.

    Gives up with RefusedError once every answer in `refused_seconds` was a refusal. `about` names the request then.
    """

    def __init__(self, clock: Clock, *, about: str = "a request", refused_seconds: float = math.inf) -> None:
        self._clock = clock
        self._about = about
        self._seconds = FIRST_DELAY_SECONDS
        self._refused_seconds = refused_seconds
        self._refused_since: float | None = None  # on the boot clock

    async def wait(self, error: StoreError | None) -> None:
        """Waits before a request is made again. `error`: what the last one met; None: it went well, but too soon."""
        self._note_refusal(error)
        if error is not None and FIRST_LOGGED_SECONDS <= self._seconds < 2 * FIRST_LOGGED_SECONDS:
            log.warning("still waiting for the API server", error=str(error))  # once; it may take long
        asked = error.retry_after if isinstance(error, UnavailableError) else None
        await self._clock.sleep(min(asked or self._seconds, 2 * LONGEST_DELAY_SECONDS))
        self._seconds = min(self._seconds * 2, LONGEST_DELAY_SECONDS)

    def reset(self) -> None:
        self._seconds = FIRST_DELAY_SECONDS
        self._refused_since = None

    def _note_refusal(self, error: StoreError | None) -> None:
        if not isinstance(error, ForbiddenError):
            self._refused_since = None
            return
        now = self._clock.boot()
        if self._refused_since is None:
            self._refused_since = now
        refused = now - self._refused_since
        if refused >= self._refused_seconds:
            lasting = f" for {refused:.0f} s now" if refused else ""
            raise RefusedError(f"{self._about} is refused{lasting}: {error}") from error


def _is_that_object(ops: Sequence[Op], manifest: Manifest) -> bool:
    """Whether the uid that a patch tests is the object's. What landed in one object says nothing about its twin."""
    return all(op.value == manifest["metadata"]["uid"] for op in ops if op.op == "test" and op.path == "/metadata/uid")


def tests_hold(ops: Sequence[Op], manifest: Manifest) -> bool:
    """Whether all tests of a patch hold for an object, as the server would find."""
    return all(lookup(manifest, op.path) == op.value for op in ops if op.op == "test")


def lookup(manifest: Manifest, path: str) -> Any:
    """The value at a JSON Pointer (RFC 6901), None where there is none."""
    found: Any = manifest
    for raw in path.split("/")[1:]:
        token = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(token)
        elif isinstance(found, list) and token.isdigit() and int(token) < len(found):
            found = found[int(token)]
        else:
            return None
    return found


def describe(manifest: Manifest) -> str:
    """What an object says about its ownership, for error messages."""
    status = manifest.get("status", {})
    owner = status.get("owner", {}).get("incarnation", "nobody")
    return f"it is {status.get('phase', 'unknown')}, epoch {status.get('epoch', 0)}, owned by {owner}"
