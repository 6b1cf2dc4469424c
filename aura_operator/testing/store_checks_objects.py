"""What every Store promises of single objects: names, tests, patches, content. Checks that run against any of them.

The same in memory and on a real API server: that is what makes MemoryStore worth testing with. Lists, watches and
Leases are in store_checks_lists.py.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from aura_operator.core.approvals import judge
from aura_operator.errors import (
    AlreadyExistsError,
    ConflictError,
    ContentRejectedError,
    NotFoundError,
    PreconditionFailedError,
    StoreError,
)
from aura_operator.store.approval_writes import settle_approval
from aura_operator.store.approvals import PENDING, approval_view
from aura_operator.store.interface import Op, Selection, add, expect, remove
from aura_operator.store.resources import CHECKPOINTS, TASKS, Manifest, Ref, new
from aura_operator.store.view import task_ref
from aura_operator.testing.store_checks_writes import Ground

SPEC = {"agentRef": {"name": "sre"}, "input": "go"}


@contextmanager
def raising(*errors: type[StoreError], words: str = "", at: str = "") -> Iterator[None]:
    """Fails unless one of these errors is raised in the block, with these words in it."""
    try:
        yield
    except errors as error:
        if words not in str(error):
            raise AssertionError(f"{at or 'the error'} says: {error}") from error
    else:
        raise AssertionError(f"no {' or '.join(error.__name__ for error in errors)} was raised {at and 'at ' + at}")


async def create(ground: Ground, name: str, **metadata: Any) -> Manifest:
    manifest = new(TASKS, ground.namespace, name, spec=SPEC)
    return await ground.user_store.create(TASKS, manifest | {"metadata": manifest["metadata"] | metadata})


def ref(ground: Ground, name: str = "one") -> Ref:
    return task_ref(ground.namespace, name)


async def metadata_is_the_servers(ground: Ground) -> None:
    store = ground.user_store
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


async def what_is_returned_is_nobody_elses(ground: Ground) -> None:
    store = ground.user_store
    created = await create(ground, "one")
    created["spec"]["input"] = "changed by its reader"
    found = await store.get(ref(ground))
    found["status"]["phase"] = "Running"
    (listed,) = (await store.list(Selection(resource=TASKS, namespace=ground.namespace))).items
    assert (listed["spec"]["input"], listed["status"]["phase"]) == ("go", "Pending")


async def the_errors_of_names(ground: Ground) -> None:
    store = ground.user_store
    created = await create(ground, "one")
    with raising(AlreadyExistsError):
        await create(ground, "one")
    with raising(NotFoundError):
        await store.get(ref(ground, "two"))
    with raising(NotFoundError):
        await store.patch(ref(ground, "two"), [add("/spec/priority", 1)])
    with raising(NotFoundError):
        await store.delete(ref(ground, "two"), uid="any")
    with raising(NotFoundError):
        await store.delete(ref(ground), uid="another")
    assert (await store.get(ref(ground)))["metadata"]["uid"] == created["metadata"]["uid"]
    await store.delete(ref(ground), uid=created["metadata"]["uid"])
    with raising(NotFoundError):
        await store.get(ref(ground))


FAILING: dict[str, list[Op]] = {
    "value": [expect("/spec/input", "other")],
    "missing": [expect("/spec/nothing", "x")],
    "deletion": [expect("/metadata/deletionTimestamp", "x")],
    "remove": [remove("/spec/nothing")],
    "replace": [Op("replace", "/spec/nothing/deep", 1)],
    "parent": [add("/spec/nothing/deep", 1)],
    "index": [add("/spec/steering/7", {"id": "a", "text": "b"})],
    "in a list": [expect("/spec/steering/0/text", "other")],
}


async def a_test_or_a_path_that_fails_changes_nothing(ground: Ground) -> None:
    store = ground.user_store
    await create(ground, "one")
    await store.patch(ref(ground), [add("/spec/steering/-", {"id": "1", "text": "hello", "by": "alice"})])
    before = await store.get(ref(ground))
    for name, ops in FAILING.items():
        with raising(PreconditionFailedError, at=name):
            await store.patch(ref(ground), [add("/spec/priority", 50), *ops])
        assert await store.get(ref(ground)) == before, name


async def json_patch_as_far_as_we_use_it(ground: Ground) -> None:
    store = ground.user_store
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


REJECTED: tuple[tuple[Op, str | None], ...] = (
    (add("/spec/input", "another"), None),
    (add("/spec/priority", 1000), None),
    (add("/spec/unknown", 1), None),
    (add("/status/unknown", 1), "status"),
    (add("/status/phase", "Sleeping"), "status"),
    (add("/status/epoch", -1), "status"),
    (add("/status/phase", "Running"), "status"),
    (add("/status/owner", {"worker": "w", "incarnation": "i", "since": "2027-01-01T00:00:00Z"}), "status"),
    (add("/status/waitingFor", [{"kind": "Timer"}]), "status"),
    (add("/status/summary", "x" * 2000), "status"),
)


async def content_that_schema_or_rules_refuse_changes_nothing(ground: Ground) -> None:
    store = ground.user_store
    await create(ground, "one")
    before = await store.get(ref(ground))
    for op, subresource in REJECTED:
        with raising(ContentRejectedError, at=f"{op.path} = {str(op.value)[:40]}"):
            await store.patch(ref(ground), [op], subresource=subresource)
        assert await store.get(ref(ground)) == before, op.path


async def content_that_is_refused_at_creation(ground: Ground) -> None:
    store = ground.user_store
    for spec in ({"input": "no agent"}, SPEC | {"unknown": 1}, SPEC | {"desired": "Perhaps"}, SPEC | {"input": ""}):
        with raising(ContentRejectedError):
            await store.create(TASKS, new(TASKS, ground.namespace, "bad", spec=spec))
    await store.create(TASKS, new(TASKS, ground.namespace, "dry", spec=SPEC), dry_run=True)
    with raising(NotFoundError):
        await store.get(ref(ground, "dry"))


async def what_is_too_large_is_refused_before_it_is_sent(ground: Ground) -> None:
    store = ground.user_store
    with raising(ContentRejectedError, words="too large"):
        await store.create(TASKS, new(TASKS, ground.namespace, "big", spec=SPEC | {"input": "x" * 1_000_001}))
    await create(ground, "one")
    with raising(ContentRejectedError, words="too large"):
        await store.patch(ref(ground), [add("/status/summary", "x" * 1_000_001)], subresource="status")


async def a_kind_without_status_has_no_such_endpoint(ground: Ground) -> None:
    store = ground.user_store
    with raising(NotFoundError):
        await store.patch(
            Ref(resource=CHECKPOINTS, namespace=ground.namespace, name="any"),
            [add("/status", {})],
            subresource="status",
        )


async def the_fields_that_the_server_knows(ground: Ground) -> None:
    store = ground.user_store
    assert {"agentRef", "desired", "steering"} <= await store.fields(TASKS, "spec")
    assert {"phase", "journal", "lastEnd"} <= await store.fields(TASKS, "status")
    assert "owner" not in await store.fields(TASKS, "spec")


async def a_vote_is_filed_under_its_voters_name(ground: Ground) -> None:
    store = ground.user_store
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


async def an_approval_is_not_settled_by_who_has_not_seen_all_votes(ground: Ground) -> None:
    store = ground.user_store
    approval = await ground.approval(await ground.task(), approvers={"users": ["bob", "admin", "tester"]})
    unvoted = await store.get(approval)
    view = approval_view(unvoted)
    decision = judge(view.terms, view.votes, view.terms.expires_at)
    assert decision is not None and "nobody answered" in decision.reason
    await store.patch(approval, [add("/spec/decision", {"approved": True, "reason": "at the last moment"})])
    with raising(ConflictError):
        await ground.do(settle_approval(view.ref, view.uid, decision, votes=view.count, now=1.0, judged=unvoted))
    assert approval_view(await store.get(approval)).phase == PENDING


OBJECTS: tuple[Callable[[Ground], Coroutine[Any, Any, None]], ...] = (
    metadata_is_the_servers,
    what_is_returned_is_nobody_elses,
    the_errors_of_names,
    a_test_or_a_path_that_fails_changes_nothing,
    json_patch_as_far_as_we_use_it,
    content_that_schema_or_rules_refuse_changes_nothing,
    content_that_is_refused_at_creation,
    what_is_too_large_is_refused_before_it_is_sent,
    a_kind_without_status_has_no_such_endpoint,
    the_fields_that_the_server_knows,
    a_vote_is_filed_under_its_voters_name,
    an_approval_is_not_settled_by_who_has_not_seen_all_votes,
)
"""Each runs on a namespace of its own."""
