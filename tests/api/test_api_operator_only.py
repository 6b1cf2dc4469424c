"""What nobody but the operator touches: checkpoints, the end of an approval, every status."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.actors import COLLECTOR, Actor, Object, await_true
from tests.api.objects import agent_object, approval_object, checkpoint_object

SESSION = {"apiVersion": "aura.mezmo.com/v1alpha1", "kind": "AuraSession", "spec": {"agentRef": {"name": "sre"}}}


@pytest.fixture
def tenant(acting_as: Callable[[str], Actor], admin: Actor) -> Actor:
    """Somebody with all rights in this namespace, custom verbs included."""
    admin.run("create", "rolebinding", "tenant", "--clusterrole=cluster-admin", "--user=tenant")
    await_true(
        lambda: admin.run("auth", "can-i", "delete", "ac", "--as=tenant").returncode == 0, "the role is in force"
    )
    return acting_as("tenant")


def test_a_tenant_with_all_rights_writes_no_checkpoint(tenant: Actor, worker: Actor, fresh: str) -> None:
    said = tenant.refused("create", "-f-", stdin=checkpoint_object(fresh))
    assert "only the operator may write auracheckpoints" in said
    worker.create(checkpoint_object(fresh))
    assert "only the operator may write" in tenant.refused_patch("ac", fresh, {"metadata": {"labels": {"a": "b"}}})
    assert "only the operator may delete auracheckpoints" in tenant.refused("delete", "ac", fresh)


@pytest.mark.behaviour(16)
def test_a_tenant_with_all_rights_deletes_no_approval(
    tenant: Actor, acting_as: Callable[[str], Actor], worker: Actor, fresh: str
) -> None:
    worker.create(approval_object(fresh))
    assert "only the operator may delete auraapprovals" in tenant.refused("delete", "aa", fresh)
    assert "only the operator may write auraapprovals/status" in tenant.refused_status_patch(
        "auraapprovals", fresh, {"phase": "Withdrawn"}
    )


def test_garbage_collection_deletes_what_it_must(acting_as: Callable[[str], Actor], worker: Actor, fresh: str) -> None:
    worker.create(approval_object(fresh))
    worker.create(checkpoint_object(fresh))
    acting_as(COLLECTOR).does("delete", "aa", fresh)
    acting_as(COLLECTOR).does("delete", "ac", fresh)


def test_agents_and_sessions_have_their_status_from_the_operator(
    tenant: Actor, admin: Actor, controller: Actor, fresh: str
) -> None:
    admin.create(agent_object(fresh))
    admin.create({**SESSION, "metadata": {"name": fresh}})
    for plural in ("auraagents", "aurasessions"):
        said = tenant.refused_status_patch(plural, fresh, {"conditions": []})
        assert f"only the operator may write {plural}/status" in said
    controller.patch_status("auraagents", fresh, {"revision": "sre-1"})


@pytest.mark.parametrize(
    "change",
    [{"data": "y"}, {"bytes": 2}, {"encoding": "GzipBase64"}, {"owner": {"name": "another"}}],
    ids=lambda change: next(iter(change)),
)
def test_a_checkpoint_never_changes(admin: Actor, worker: Actor, fresh: str, change: Object) -> None:
    worker.create(checkpoint_object(fresh))
    assert "a checkpoint never changes" in admin.refused_patch("ac", fresh, {"spec": change})
    assert "spec: Required value" in admin.refused_patch("ac", fresh, {"spec": None})


def test_a_journal_segment_says_what_it_is(worker: Actor, fresh: str) -> None:
    words = "type Journal has the field journal, no other type has"
    journal = {"schema": 1, "first": 0, "next": 3, "headBefore": "", "head": "0" * 64, "previous": []}
    assert words in worker.refused("create", "-f-", stdin=checkpoint_object(fresh, type="Journal"))
    assert words in worker.refused("create", "-f-", stdin=checkpoint_object(fresh, journal=journal))
    worker.create(checkpoint_object(fresh, type="Journal", journal=journal))


def test_the_agent_of_a_session_never_changes(admin: Actor, fresh: str) -> None:
    admin.create({**SESSION, "metadata": {"name": fresh}})
    said = admin.refused_patch("aurasession", fresh, {"spec": {"agentRef": {"name": "other"}}})
    assert "the agent of a session never changes" in said


def test_a_checkpoint_holds_250_kib_and_no_more(worker: Actor, fresh: str) -> None:
    worker.create(checkpoint_object(fresh, data="x" * 256000))
    said = worker.refused("create", "-f-", stdin=checkpoint_object(f"{fresh}-more", data="x" * 256001))
    assert "spec.data: Too long" in said
