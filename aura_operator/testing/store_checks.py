"""What every Store must make of each of the operator's writes: checks that run against any of them.

They assert the state of the world, not the requests. Where they run is the tests' part: memory, memory that loses
answers, a real API server. What holds for single writes is in store_checks_rules.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from aura_operator.core.entries import Verdict
from aura_operator.core.lifecycle import Phase
from aura_operator.core.ownership import Owner
from aura_operator.errors import (
    OutcomeUnknownError,
    PreconditionFailedError,
)
from aura_operator.store.interface import add
from aura_operator.store.resources import APPROVALS, TASKS, new
from aura_operator.store.view import task_view
from aura_operator.store.writes import Write
from aura_operator.testing.store_checks_writes import Ground, claim, content, fire, orphan, refused, settle


async def lands_once(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """`landed` is false before and true after; sending it again, byte for byte, changes nothing."""
    write = await make(ground)
    assert not write.landed(await ground.read(write.ref)), f"{write.name} says that it landed before it was sent"
    after = await ground.do(write)
    assert write.landed(after)
    again = await ground.do(write)
    assert content(again) == content(after)
    # Refused, or nobody knows: what counts is what is there.
    with suppress(PreconditionFailedError, OutcomeUnknownError):
        await ground.store.patch(write.ref, write.ops, subresource="status")
    assert content(await ground.read(write.ref)) == content(after)


async def is_refused_for_another_object(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """An object of the same name with another uid is left alone."""
    write = await make(ground)
    before = await ground.read(write.ref)
    await ground.user_store.delete(write.ref, uid=before["metadata"]["uid"])
    resource, metadata = write.ref.resource, before["metadata"]
    twin = new(resource, metadata["namespace"], metadata["name"], spec=before["spec"])
    fresh = await ground.user_store.create(resource, twin)
    assert await refused(ground, write)
    assert content(await ground.read(write.ref)) == content(fresh)


async def is_refused_when_its_task_moved_on(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """A write made from an old sight of the object changes nothing once somebody else was there."""
    write = await make(ground)
    await _moved_on(ground, write)
    before = await ground.read(write.ref)
    await refused(ground, write)
    assert content(await ground.read(write.ref)) == content(before)


async def a_users_edit_makes_none_fail(ground: Ground, make: Callable[[Ground], Awaitable[Write]]) -> None:
    """A patch of the spec between read and write is no conflict."""
    write = await make(ground)
    field, value = ("priority", 7) if write.ref.resource == TASKS else ("decision", None)
    if value is not None:
        await ground.user_store.patch(write.ref, [add(f"/spec/{field}", value)])
    else:
        await ground.user_store.patch(write.ref, [add("/metadata/labels", {"seen": "yes"})])
    assert write.landed(await ground.do(write))
    if value is not None:
        assert (await ground.read(write.ref))["spec"][field] == value


EACH_WRITE: tuple[Callable[[Ground, Callable[[Ground], Awaitable[Write]]], Coroutine[Any, Any, None]], ...] = (
    lands_once,
    is_refused_for_another_object,
    is_refused_when_its_task_moved_on,
    a_users_edit_makes_none_fail,
)


async def _moved_on(ground: Ground, write: Write) -> None:
    """Somebody else does the next thing: claims a pending task, takes a running one over, settles an approval."""
    if write.ref.resource == APPROVALS:
        await ground.do(settle(await ground.read(write.ref), Verdict.WITHDRAWN, "the task ended"))
        return
    task = await ground.view(write.ref)
    if task.phase is Phase.RUNNING:
        task = task_view(await ground.do(orphan(task)))
    elif task.phase is Phase.WAITING:
        task = task_view(await ground.do(fire(task, task.waiting_for[0].name)))
    await ground.do(claim(task, Owner(worker="c", incarnation="pod-c.1")))
