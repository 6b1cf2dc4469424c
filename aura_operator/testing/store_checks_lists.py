"""What every Store promises of lists, watches and Leases. Checks that run against any of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from aura_operator.errors import ContentRejectedError, PreconditionFailedError, StoreError, WatchExpiredError
from aura_operator.store.interface import Selection, Store, WatchEvent, WatchKind, add
from aura_operator.store.leases import lease_ref, new_lease, renewal, takeover
from aura_operator.store.resources import LEASES, TASKS
from aura_operator.testing.store_checks_objects import create, raising, ref
from aura_operator.testing.store_checks_writes import A, Ground, claim

# Lists


async def names(ground: Ground, **selection: str) -> list[str]:
    page = await ground.user_store.list(Selection(resource=TASKS, namespace=ground.namespace, **selection))
    return [item["metadata"]["name"] for item in page.items]


async def selectors(ground: Ground) -> None:
    await create(ground, "plain")
    await create(ground, "red", labels={"colour": "red"})
    await create(ground, "blue", labels={"colour": "blue", "deep": "yes"})
    await ground.do(claim((await ground.view(ref(ground, "blue"))), A))
    assert await names(ground, fields="status.phase=Pending") == ["plain", "red"]
    assert await names(ground, fields="status.phase!=Pending") == ["blue"]
    assert await names(ground, fields="status.owner.worker=a") == ["blue"]
    assert await names(ground, fields="status.owner.worker=") == ["plain", "red"]
    assert await names(ground, fields="metadata.name=red,status.phase=Pending") == ["red"]
    assert await names(ground, labels="colour=red") == ["red"]
    assert await names(ground, labels="colour,deep=yes") == ["blue"]
    assert await names(ground, labels="colour!=red") == ["blue", "plain"]
    with raising(ContentRejectedError):
        await names(ground, fields="spec.input=go")


async def approvals_are_found_by_their_task(ground: Ground) -> None:
    store = ground.user_store
    task = await ground.task()
    approval = await ground.approval(task)
    await ground.approval(await ground.task())
    fields = f"spec.request.task={task.ref.name}"
    page = await store.list(Selection(resource=approval.resource, namespace=ground.namespace, fields=fields))
    assert [item["metadata"]["name"] for item in page.items] == [approval.name]
    assert (page.items[0]["kind"], page.items[0]["apiVersion"]) == ("AuraApproval", "aura.mezmo.com/v1alpha1")


async def pages_show_one_moment(ground: Ground) -> None:
    store = ground.user_store
    for number in range(5):
        await create(ground, f"t{number}")
    selection = Selection(resource=TASKS, namespace=ground.namespace)
    first = await store.list(selection, limit=2)
    await create(ground, "t0a")
    second = await store.list(selection, limit=2, continue_token=first.continue_token)
    last = await store.list(selection, limit=2, continue_token=second.continue_token)
    assert [item["metadata"]["name"] for page in (first, second, last) for item in page.items] == [
        f"t{number}" for number in range(5)
    ]
    assert last.continue_token is None
    assert first.resource_version == second.resource_version == last.resource_version
    with raising(WatchExpiredError, ContentRejectedError):
        await store.list(selection, continue_token="nonsense")


# Watches


async def collected(store: Store, selection: Selection, version: str, count: int) -> list[WatchEvent]:
    events: list[WatchEvent] = []
    async with asyncio.timeout(20):
        async for event in store.watch(selection, version):
            if event.kind is not WatchKind.BOOKMARK:
                events.append(event)
            if len(events) == count:
                break
    return events


async def a_watch_tells_of_coming_changing_leaving_and_going(ground: Ground) -> None:
    store = ground.user_store
    selection = Selection(resource=TASKS, namespace=ground.namespace, fields="status.phase=Pending")
    version = (await store.list(selection)).resource_version
    created = await create(ground, "one")
    await store.patch(ref(ground), [add("/spec/priority", 1)])
    claimed = await ground.do(claim(await ground.view(ref(ground)), A))
    await create(ground, "two")
    two = await store.get(ref(ground, "two"))
    await store.delete(ref(ground, "two"), uid=two["metadata"]["uid"])
    events = await collected(store, selection, version, 5)
    assert [(event.kind.value, event.object["metadata"]["name"]) for event in events] == [
        ("ADDED", "one"),
        ("MODIFIED", "one"),
        ("DELETED", "one"),
        ("ADDED", "two"),
        ("DELETED", "two"),
    ]
    left = events[2].object
    assert left["status"]["phase"] == "Pending", "one that leaves is told as it was before"
    assert left["metadata"]["resourceVersion"] == claimed["metadata"]["resourceVersion"]
    assert left["metadata"]["uid"] == created["metadata"]["uid"]
    rest = await collected(store, selection, events[2].object["metadata"]["resourceVersion"], 2)
    assert [event.kind.value for event in rest] == ["ADDED", "DELETED"], "a watch goes on after any event's version"


# Leases


async def of_several_takeovers_of_a_lease_one_wins(ground: Ground) -> None:
    store = ground.user_store
    lease = lease_ref(ground.namespace, "w")
    manifest = new_lease(lease, holder="a", seconds=15, now=1.0, role="worker", annotations={"x.example/y": "1"})
    found = await store.create(LEASES, manifest)
    renewed = await store.patch(lease, renewal("a", 2.0, {"x.example/y": "2"}))
    assert renewed["metadata"]["annotations"] == {"x.example/y": "2"}
    with raising(PreconditionFailedError):
        await store.patch(lease, renewal("b", 3.0, {}))
    with raising(PreconditionFailedError):
        await store.patch(lease, takeover(found, holder="b", now=3.0, annotations={}))  # renewed since
    results = await asyncio.gather(
        *(store.patch(lease, takeover(renewed, holder=f"h{n}", now=4.0, annotations={})) for n in range(5)),
        return_exceptions=True,
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert all(isinstance(result, dict | StoreError) for result in results)
    assert (await store.get(lease))["spec"]["leaseTransitions"] == 1


LISTS: tuple[Callable[[Ground], Coroutine[Any, Any, None]], ...] = (
    selectors,
    approvals_are_found_by_their_task,
    pages_show_one_moment,
    a_watch_tells_of_coming_changing_leaving_and_going,
    of_several_takeovers_of_a_lease_one_wins,
)
"""Each runs on a namespace of its own."""
