"""The Store's own promises, word for word the same in memory and on a real API server: that is what makes MemoryStore
worth testing with."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aura_operator.core.approvals import judge
from aura_operator.errors import (
    AlreadyExistsError,
    ConflictError,
    ContentRejectedError,
    NotFoundError,
    PreconditionFailedError,
    StoreError,
    WatchExpiredError,
)
from aura_operator.store.approval_writes import settle_approval
from aura_operator.store.approvals import PENDING, approval_view
from aura_operator.store.interface import Op, Selection, Store, WatchEvent, WatchKind, add, expect, remove
from aura_operator.store.leases import lease_ref, new_lease, renewal, takeover
from aura_operator.store.resources import CHECKPOINTS, LEASES, TASKS, Manifest, Ref, new
from aura_operator.store.view import task_ref
from aura_operator.testing.store_checks_writes import A, Ground, claim

SPEC = {"agentRef": {"name": "sre"}, "input": "go"}


async def create(ground: Ground, name: str, **metadata: Any) -> Manifest:
    manifest = new(TASKS, ground.namespace, name, spec=SPEC)
    return await ground.user_store.create(TASKS, manifest | {"metadata": manifest["metadata"] | metadata})


def ref(ground: Ground, name: str = "one") -> Ref:
    return task_ref(ground.namespace, name)


@pytest.fixture(autouse=True)
def store(ground: Ground) -> Store:
    return ground.user_store


async def test_metadata_is_the_servers(ground: Ground, store: Store) -> None:
    created = await create(ground, "one", uid="chosen", resourceVersion="", generation=9)
    metadata = created["metadata"]
    assert metadata["uid"] != "chosen" and metadata["generation"] == 1
    assert metadata["creationTimestamp"].endswith("Z")
    edited = await store.patch(ref(ground), [add("/spec/priority", 5)])
    assert edited["metadata"]["generation"] == 2
    assert edited["metadata"]["resourceVersion"] != metadata["resourceVersion"]
    again = await store.patch(ref(ground), [add("/spec/priority", 5)])
    assert again["metadata"]["resourceVersion"] == edited["metadata"]["resourceVersion"], "nothing changed"
    status = await store.patch(ref(ground), [add("/status/summary", "so")], subresource="status")
    assert status["metadata"]["generation"] == 2


async def test_what_is_returned_is_nobody_elses(ground: Ground, store: Store) -> None:
    created = await create(ground, "one")
    created["spec"]["input"] = "changed by its reader"
    found = await store.get(ref(ground))
    found["status"]["phase"] = "Running"
    (listed,) = (await store.list(Selection(resource=TASKS, namespace=ground.namespace))).items
    assert (listed["spec"]["input"], listed["status"]["phase"]) == ("go", "Pending")


async def test_the_errors_of_names(ground: Ground, store: Store) -> None:
    created = await create(ground, "one")
    with pytest.raises(AlreadyExistsError):
        await create(ground, "one")
    with pytest.raises(NotFoundError):
        await store.get(ref(ground, "two"))
    with pytest.raises(NotFoundError):
        await store.patch(ref(ground, "two"), [add("/spec/priority", 1)])
    with pytest.raises(NotFoundError):
        await store.delete(ref(ground, "two"), uid="any")
    with pytest.raises(NotFoundError):
        await store.delete(ref(ground), uid="another")
    assert (await store.get(ref(ground)))["metadata"]["uid"] == created["metadata"]["uid"]
    await store.delete(ref(ground), uid=created["metadata"]["uid"])
    with pytest.raises(NotFoundError):
        await store.get(ref(ground))


@pytest.mark.parametrize(
    "ops",
    [
        [expect("/spec/input", "other")],
        [expect("/spec/nothing", "x")],
        [expect("/metadata/deletionTimestamp", "x")],
        [remove("/spec/nothing")],
        [Op("replace", "/spec/nothing/deep", 1)],
        [add("/spec/nothing/deep", 1)],
        [add("/spec/steering/7", {"id": "a", "text": "b"})],
        [expect("/spec/steering/0/text", "other")],
    ],
    ids=["value", "missing", "deletion", "remove", "replace", "parent", "index", "in a list"],
)
async def test_a_test_or_a_path_that_fails_changes_nothing(ground: Ground, store: Store, ops: list[Op]) -> None:
    await create(ground, "one")
    await store.patch(ref(ground), [add("/spec/steering/-", {"id": "1", "text": "hello", "by": "alice"})])
    before = await store.get(ref(ground))
    with pytest.raises(PreconditionFailedError):
        await store.patch(ref(ground), [add("/spec/priority", 50), *ops])
    assert await store.get(ref(ground)) == before


async def test_json_patch_as_far_as_we_use_it(ground: Ground, store: Store) -> None:
    await create(ground, "one", annotations={"a.example/b-c": "old"})
    patched = await store.patch(
        ref(ground),
        [
            expect("/spec/sessionRef", None),
            expect("/metadata/deletionTimestamp", None),
            expect("/metadata/annotations/a.example~1b-c", "old"),
            add("/metadata/annotations/a.example~1b-c", "new"),
            add("/spec/steering/-", {"id": "1", "text": "first", "by": "alice"}),
            add("/spec/steering/-", {"id": "2", "text": "second", "by": "alice"}),
            expect("/spec/steering/1/text", "second"),
            Op("replace", "/spec/priority", 3),
            Op("replace", "/spec/ttlSecondsAfterFinished", 60),  # adds what isn't there; the RFC would refuse
            remove("/spec/ttlSecondsAfterFinished"),
        ],
    )
    assert patched["metadata"]["annotations"] == {"a.example/b-c": "new"}
    assert [item["id"] for item in patched["spec"]["steering"]] == ["1", "2"]
    assert patched["spec"]["priority"] == 3 and "ttlSecondsAfterFinished" not in patched["spec"]


@pytest.mark.parametrize(
    ("ops", "subresource"),
    [
        ([add("/spec/input", "another")], None),
        ([add("/spec/priority", 1000)], None),
        ([add("/spec/unknown", 1)], None),
        ([add("/status/unknown", 1)], "status"),
        ([add("/status/phase", "Sleeping")], "status"),
        ([add("/status/epoch", -1)], "status"),
        ([add("/status/phase", "Running")], "status"),
        ([add("/status/owner", {"worker": "w", "incarnation": "i", "since": "2027-01-01T00:00:00Z"})], "status"),
        ([add("/status/waitingFor", [{"kind": "Timer"}])], "status"),
        ([add("/status/summary", "x" * 2000)], "status"),
    ],
    ids=lambda value: value[0].path if isinstance(value, list) else "",
)
async def test_content_that_schema_or_rules_refuse(
    ground: Ground, store: Store, ops: list[Op], subresource: str | None
) -> None:
    await create(ground, "one")
    before = await store.get(ref(ground))
    with pytest.raises(ContentRejectedError):
        await store.patch(ref(ground), ops, subresource=subresource)
    assert await store.get(ref(ground)) == before


async def test_content_that_is_refused_at_creation(ground: Ground, store: Store) -> None:
    for spec in ({"input": "no agent"}, SPEC | {"unknown": 1}, SPEC | {"desired": "Perhaps"}, SPEC | {"input": ""}):
        with pytest.raises(ContentRejectedError):
            await store.create(TASKS, new(TASKS, ground.namespace, "bad", spec=spec))
    await store.create(TASKS, new(TASKS, ground.namespace, "dry", spec=SPEC), dry_run=True)
    with pytest.raises(NotFoundError):
        await store.get(ref(ground, "dry"))


async def test_what_is_too_large_is_refused_before_it_is_sent(ground: Ground, store: Store) -> None:
    with pytest.raises(ContentRejectedError, match="too large"):
        await store.create(TASKS, new(TASKS, ground.namespace, "big", spec=SPEC | {"input": "x" * 1_000_001}))
    await create(ground, "one")
    with pytest.raises(ContentRejectedError, match="too large"):
        await store.patch(ref(ground), [add("/status/summary", "x" * 1_000_001)], subresource="status")


async def test_a_kind_without_status_has_no_such_endpoint(ground: Ground, store: Store) -> None:
    with pytest.raises(NotFoundError):
        await store.patch(
            Ref(resource=CHECKPOINTS, namespace=ground.namespace, name="any"),
            [add("/status", {})],
            subresource="status",
        )


async def test_the_fields_that_the_server_knows(ground: Ground, store: Store) -> None:
    assert {"agentRef", "desired", "steering"} <= await store.fields(TASKS, "spec")
    assert {"phase", "journal", "lastEnd"} <= await store.fields(TASKS, "status")
    assert "owner" not in await store.fields(TASKS, "spec")


async def test_a_vote_is_filed_under_its_voters_name(ground: Ground, store: Store) -> None:
    approval = await ground.approval(await ground.task(), approvers={"users": ["bob", "admin", "tester"]})
    reason = 'if a < b && "c"'  # a server escapes such signs, and can't compare them in a test
    voted = await store.patch(approval, [add("/spec/decision", {"approved": True, "reason": reason})])
    assert "decision" not in voted["spec"]
    (vote,) = voted["spec"]["decisions"].values()
    assert vote == {"approved": True, "reason": reason}
    view = approval_view(voted)
    decision = judge(view.terms, view.votes, 1.0)
    assert decision is not None
    settled = await ground.do(settle_approval(view.ref, view.uid, decision, votes=view.count, now=1.0, judged=voted))
    assert settled["status"]["phase"] == "Approved"


async def test_an_approval_is_not_settled_by_who_has_not_seen_all_votes(ground: Ground, store: Store) -> None:
    approval = await ground.approval(await ground.task(), approvers={"users": ["bob", "admin", "tester"]})
    unvoted = await store.get(approval)
    view = approval_view(unvoted)
    decision = judge(view.terms, view.votes, view.terms.expires_at)
    assert decision is not None and "nobody answered" in decision.reason
    await store.patch(approval, [add("/spec/decision", {"approved": True, "reason": "at the last moment"})])
    with pytest.raises(ConflictError):
        await ground.do(settle_approval(view.ref, view.uid, decision, votes=view.count, now=1.0, judged=unvoted))
    assert approval_view(await store.get(approval)).phase == PENDING


# Lists


async def names(store: Store, ground: Ground, **selection: str) -> list[str]:
    page = await store.list(Selection(resource=TASKS, namespace=ground.namespace, **selection))
    return [item["metadata"]["name"] for item in page.items]


async def test_selectors(ground: Ground, store: Store) -> None:
    await create(ground, "plain")
    await create(ground, "red", labels={"colour": "red"})
    await create(ground, "blue", labels={"colour": "blue", "deep": "yes"})
    await ground.do(claim((await ground.view(ref(ground, "blue"))), A))
    assert await names(store, ground, fields="status.phase=Pending") == ["plain", "red"]
    assert await names(store, ground, fields="status.phase!=Pending") == ["blue"]
    assert await names(store, ground, fields="status.owner.worker=a") == ["blue"]
    assert await names(store, ground, fields="status.owner.worker=") == ["plain", "red"]
    assert await names(store, ground, fields="metadata.name=red,status.phase=Pending") == ["red"]
    assert await names(store, ground, labels="colour=red") == ["red"]
    assert await names(store, ground, labels="colour,deep=yes") == ["blue"]
    assert await names(store, ground, labels="colour!=red") == ["blue", "plain"]
    with pytest.raises(ContentRejectedError):
        await names(store, ground, fields="spec.input=go")


async def test_approvals_are_found_by_their_task(ground: Ground, store: Store) -> None:
    task = await ground.task()
    approval = await ground.approval(task)
    await ground.approval(await ground.task())
    fields = f"spec.request.task={task.ref.name}"
    page = await store.list(Selection(resource=approval.resource, namespace=ground.namespace, fields=fields))
    assert [item["metadata"]["name"] for item in page.items] == [approval.name]
    assert (page.items[0]["kind"], page.items[0]["apiVersion"]) == ("AuraApproval", "aura.mezmo.com/v1alpha1")


async def test_pages_show_one_moment(ground: Ground, store: Store) -> None:
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
    with pytest.raises((WatchExpiredError, ContentRejectedError)):
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


async def test_a_watch_tells_of_coming_changing_leaving_and_going(ground: Ground, store: Store) -> None:
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


async def test_of_several_takeovers_of_a_lease_one_wins(ground: Ground, store: Store) -> None:
    lease = lease_ref(ground.namespace, "w")
    manifest = new_lease(lease, holder="a", seconds=15, now=1.0, role="worker", annotations={"x.example/y": "1"})
    found = await store.create(LEASES, manifest)
    renewed = await store.patch(lease, renewal("a", 2.0, {"x.example/y": "2"}))
    assert renewed["metadata"]["annotations"] == {"x.example/y": "2"}
    with pytest.raises(PreconditionFailedError):
        await store.patch(lease, renewal("b", 3.0, {}))
    with pytest.raises(PreconditionFailedError):
        await store.patch(lease, takeover(found, holder="b", now=3.0, annotations={}))  # renewed since
    results = await asyncio.gather(
        *(store.patch(lease, takeover(renewed, holder=f"h{n}", now=4.0, annotations={})) for n in range(5)),
        return_exceptions=True,
    )
    assert sum(not isinstance(result, BaseException) for result in results) == 1
    assert all(isinstance(result, dict | StoreError) for result in results)
    assert (await store.get(lease))["spec"]["leaseTransitions"] == 1
