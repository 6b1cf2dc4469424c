"""The store against a real API server through a proxy that swallows, delays, cuts and refuses: one effect, no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aura_operator.clock import SystemClock
from aura_operator.errors import ContentRejectedError, ForbiddenError, NotFoundError, OutcomeUnknownError, StoreError
from aura_operator.store import kube
from aura_operator.store.commit import commit
from aura_operator.store.follow import Change, Seen, follow
from aura_operator.store.interface import Selection, add
from aura_operator.store.kube import KubeStore, configuration_of
from aura_operator.store.overflow import create_retrying, payload_object, read_stored
from aura_operator.store.resources import CHECKPOINTS, REVISIONS, TASKS, Ref, Resource, new
from aura_operator.store.view import task_view
from aura_operator.store.writes import Write
from aura_operator.testing.proxy import FaultProxy
from aura_operator.testing.proxy_rules import (
    Action,
    Answer,
    CutBefore,
    Delay,
    ExpireWatch,
    HoldAnswer,
    Predicate,
    SwallowAnswer,
    matching,
)
from aura_operator.testing.store_checks_writes import WRITES, A, B, Ground, append, claim, orphan, owned
from hack.cluster import AnyCluster
from hack.install import NAMESPACE
from hack.kubectl import Kubectl

REQUEST_SECONDS = 1.0

FAULTS: dict[str, Action] = {
    "the answer is swallowed": SwallowAnswer(),
    "the answer is held until the client gives up": HoldAnswer(),
    "the request is held and lands after the client gave up": Delay(seconds=2 * REQUEST_SECONDS),
    "the connection is cut before": CutBefore(),
    "429": Answer(status=429, retry_after_seconds=1),
    "500": Answer(status=500),
    "503": Answer(status=503),
}

SAYS_THE_SAME_AGAIN = {"remark", "count"}
"""Writes that change nothing when they land twice, and so don't test that they have landed."""


@pytest.fixture
async def proxy(proxy_arguments: dict[str, Any]) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(**proxy_arguments) as running:
        yield running


@pytest.fixture
async def ground(
    cluster: AnyCluster, kubectl: Kubectl, namespace: str, proxy: FaultProxy, tmp_path: Path
) -> AsyncIterator[Ground]:
    """The operator's requests pass the proxy, with the rights of worker and controller; the user's don't."""
    for component in ("worker", "controller"):
        role = f"--clusterrole=aura-{component}"
        kubectl("create", "rolebinding", component, role, f"--serviceaccount={NAMESPACE}:aura-worker")
    document = json.loads(cluster.service_account_kubeconfig(NAMESPACE, "aura-worker").read_text())
    kubeconfig = proxy.kubeconfig(document["users"][0]["user"]["token"], tmp_path / "proxied.kubeconfig")
    store = KubeStore(await configuration_of(str(kubeconfig)), request_seconds=REQUEST_SECONDS)
    user_store = await KubeStore.connect(str(cluster.kubeconfig))
    yield Ground(store=store, user_store=user_store, clock=SystemClock(), namespace=namespace)
    await store.aclose()
    await user_store.aclose()


@pytest.mark.behaviour(11)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_each_write_has_one_effect(ground: Ground, proxy: FaultProxy, fault: Action) -> None:
    writes = {name: await make(ground) for name, make in WRITES.items()}
    generations = {name: (await ground.read(write.ref))["metadata"]["generation"] for name, write in writes.items()}
    proxy.log.clear()
    for write in writes.values():
        proxy.add(fault, patches_of(write), nth=1)

    async def carried_out(name: str, write: Write) -> None:
        after = await commit(ground.store, write, ground.clock)
        assert write.landed(after), f"{name}: taken for done, and it isn't"

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for name, write in writes.items():
            group.create_task(carried_out(name, write))
    async with asyncio.timeout(10):
        for write in writes.values():
            await proxy.wait_seen(patches_of(write), count=len(proxy.seen(patches_of(write))))
    for name, write in writes.items():
        exchanges = proxy.seen(patches_of(write))
        assert exchanges[0].action == fault, name
        applied = [exchange.request.body for exchange in exchanges if exchange.status == 200]
        assert len(applied) == 1 or name in SAYS_THE_SAME_AGAIN, f"{name}: applied {len(applied)} times"
        assert {exchange.request.body for exchange in exchanges} == {applied[0]}, f"{name}: a resend is byte-identical"
        manifest = await ground.read(write.ref)
        assert write.landed(manifest) and manifest["metadata"]["generation"] == generations[name]


@pytest.mark.behaviour(11)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_an_overflow_object_is_created_once(ground: Ground, proxy: FaultProxy, fault: Action) -> None:
    stored, manifest = payload_object((await ground.task()).manifest, "log line\n" * 1000)
    creations = matching(method="POST", path="/auracheckpoints$")
    proxy.add(fault, creations, nth=1)
    async with asyncio.timeout(15):
        await create_retrying(ground.store, CHECKPOINTS, manifest, ground.clock)
        await proxy.wait_seen(creations, count=len(proxy.seen(creations)))
    assert [exchange.status for exchange in proxy.seen(creations)].count(201) == 1
    assert await read_stored(ground.store, ground.namespace, stored, ground.clock) == "log line\n" * 1000


@pytest.mark.behaviour(9)
async def test_a_write_waits_an_outage_out(ground: Ground, proxy: FaultProxy) -> None:
    task = await ground.claimed()
    write = append(owned(task, A), '{"k":"x"}')
    await proxy.down()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        writing = group.create_task(commit(ground.store, write, ground.clock))
        await asyncio.wait({writing}, timeout=1.5)
        assert not writing.done()
        await proxy.up()
    assert write.landed(await ground.read(task.ref))


@pytest.mark.behaviour(7)
async def test_a_write_that_was_held_for_too_long_lands_nowhere(ground: Ground, proxy: FaultProxy) -> None:
    """The stale owner's request is on its way while the task is taken over: it arrives and changes nothing."""
    task = await ground.claimed()
    late = append(owned(task, A), '{"k":"late"}')
    proxy.log.clear()
    proxy.add(Delay(seconds=3 * REQUEST_SECONDS), patches_of(late), nth=1)
    with pytest.raises(OutcomeUnknownError):
        await ground.store.patch(late.ref, late.ops, subresource="status")
    orphaned = task_view(await commit(ground.user_store, orphan(task), ground.clock))
    taken = await commit(ground.user_store, claim(orphaned, B), ground.clock)
    async with asyncio.timeout(10):
        (exchange,) = await proxy.wait_seen(patches_of(late))
    assert exchange.status == 422
    assert (await ground.read(task.ref))["metadata"]["resourceVersion"] == taken["metadata"]["resourceVersion"]


def patches_of(write: Write) -> Predicate:
    return matching(method="PATCH", path=f"/{write.ref.name}/status$")


# Following


@pytest.fixture
async def seen(ground: Ground) -> AsyncIterator[asyncio.Queue[Seen]]:
    """What follow() tells of the tasks of the namespace."""
    told: asyncio.Queue[Seen] = asyncio.Queue()

    async def run() -> None:
        async for change in follow(ground.store, Selection(resource=TASKS, namespace=ground.namespace), ground.clock):
            told.put_nowait(change)

    async with asyncio.TaskGroup() as group:
        work = group.create_task(run())
        yield told
        work.cancel()


WATCHES = matching(method="GET", path="/auratasks$")


async def until(told: asyncio.Queue[Seen], change: Change, name: str = "") -> list[tuple[Change, str]]:
    """All that is told up to and with the change."""
    passed: list[tuple[Change, str]] = []
    async with asyncio.timeout(20):
        while not passed or passed[-1] != (change, name):
            news = await told.get()
            passed.append((news.change, news.object.get("metadata", {}).get("name", "")))
    return passed


@pytest.mark.behaviour(10)
async def test_a_cut_watch_goes_on(ground: Ground, proxy: FaultProxy, seen: asyncio.Queue[Seen]) -> None:
    await until(seen, Change.SYNCED)
    await proxy.wait_watching(WATCHES)
    assert proxy.cut_watches(WATCHES) == 1
    task = await ground.task()
    assert await until(seen, Change.SET, task.ref.name) == [(Change.SET, task.ref.name)]


@pytest.mark.behaviour(10)
@pytest.mark.parametrize("way", [ExpireWatch(), Answer(status=410)], ids=["as an event", "as an answer"])
async def test_an_expired_watch_is_listed_anew(
    ground: Ground, proxy: FaultProxy, way: Action, seen: asyncio.Queue[Seen]
) -> None:
    await until(seen, Change.SYNCED)
    await proxy.wait_watching(WATCHES)
    proxy.add(way, lambda request: WATCHES(request) and request.is_watch, nth=1)
    proxy.cut_watches(WATCHES)
    await until(seen, Change.SYNCED)
    task = await ground.task()
    await until(seen, Change.SET, task.ref.name)


@pytest.mark.behaviour(10)
@pytest.mark.behaviour(9)
async def test_what_went_during_an_outage_is_told_as_gone(
    ground: Ground, proxy: FaultProxy, seen: asyncio.Queue[Seen]
) -> None:
    await until(seen, Change.SYNCED)
    goes, stays = await ground.task(), await ground.task()
    await until(seen, Change.SET, stays.ref.name)
    await proxy.wait_watching(WATCHES)
    await proxy.down()
    await ground.user_store.delete(goes.ref, uid=goes.uid)
    comes = await ground.task()
    # After an API server's restart each resume is 410, so that no DELETED of the meantime is ever sent.
    proxy.add(Answer(status=410), lambda request: WATCHES(request) and request.is_watch, nth=1)
    await proxy.up()
    passed = await until(seen, Change.SYNCED)
    while (Change.GONE, goes.ref.name) not in passed:
        passed += await until(seen, Change.SYNCED)
    assert (Change.SET, comes.ref.name) in passed
    assert (Change.SET, stays.ref.name) not in passed


# What errors are called


async def test_refusals_for_content_fail_at_once(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.6 MB is too much for etcd, which the server says with a 500; 3.2 MB for the server, which says 413."""
    monkeypatch.setattr(kube, "MAX_BODY_BYTES", 10**8)
    for size_bytes in (1_600_000, 3_200_000):
        big = new(REVISIONS, ground.namespace, "big", data={"spec": "x" * size_bytes}, revision=1)
        with pytest.raises(ContentRejectedError, match="too large"):
            await ground.user_store.create(REVISIONS, big)


async def test_an_unknown_kind_is_not_found(ground: Ground) -> None:
    unknown = Resource(group="aura.mezmo.com", version="v1alpha1", plural="aurawishes", kind="AuraWish")
    with pytest.raises(NotFoundError):
        await ground.user_store.get(Ref(resource=unknown, namespace=ground.namespace, name="one"))
    with pytest.raises(NotFoundError):
        await ground.user_store.create(unknown, new(unknown, ground.namespace, "one"))


async def test_a_stale_version_is_a_test_that_failed(ground: Ground) -> None:
    task = await ground.task()
    stale = add("/metadata/resourceVersion", task.manifest["metadata"]["resourceVersion"])
    await ground.user_store.patch(task.ref, [add("/spec/priority", 1)])
    with pytest.raises(StoreError) as caught:
        await ground.user_store.patch(task.ref, [stale, add("/spec/priority", 2)])
    assert caught.value.reason == "PreconditionFailed"


async def test_rights_that_are_missing_are_waited_for_not_taken_for_refused_content(
    ground: Ground, proxy: FaultProxy, tmp_path: Path
) -> None:
    configuration = await configuration_of(str(proxy.kubeconfig("no-such-token", tmp_path / "stranger.kubeconfig")))
    stranger = KubeStore(configuration)
    task = await ground.task()
    with pytest.raises(ForbiddenError):
        await stranger.get(task.ref)
    await stranger.aclose()
    with pytest.raises(ForbiddenError):
        await ground.store.patch(task.ref, [add("/spec/priority", 2)])  # the operator doesn't edit what users want


async def test_a_server_that_is_gone_leaves_the_outcome_unknown(ground: Ground, proxy: FaultProxy) -> None:
    task = await ground.task()
    await proxy.down()
    with pytest.raises(OutcomeUnknownError):
        await ground.store.get(task.ref)
    with pytest.raises(OutcomeUnknownError):
        await read_one(ground)
    await proxy.up()
    assert await ground.store.get(task.ref) == await ground.read(task.ref)


async def read_one(ground: Ground) -> None:
    async for _ in ground.store.watch(Selection(resource=TASKS, namespace=ground.namespace), "1"):
        return
