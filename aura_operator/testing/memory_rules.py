"""The CEL rules of our CRDs that the operator's own writes rely on, in Python. Owns rules between an old and a new
object, and those between fields; bounds and shapes are memory_schema.py's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from aura_operator.core.lifecycle import Desired, Phase
from aura_operator.errors import ContentRejectedError
from aura_operator.store.resources import APPROVALS, CHECKPOINTS, TASKS, Manifest, Resource

CHANGEABLE = frozenset({"desired", "steering", "priority", "ttlSecondsAfterFinished"})


def check(resource: Resource, old: Manifest | None, new: Manifest, what: str) -> None:
    """Raises ContentRejectedError for the first rule that the change breaks."""
    rules = _RULES.get(resource)
    if rules is None:
        return
    for broken in rules(old, new):
        raise ContentRejectedError(f"{what}: Invalid value: {broken} (422)")


def _task(old: Manifest | None, new: Manifest) -> Iterator[str]:
    status = new["status"]
    if (status["phase"] == Phase.RUNNING.value) != ("owner" in status):
        yield "a task has an owner if, and only if, it is Running"
    steering = new["spec"]["steering"]
    if len({item["id"] for item in steering}) < len(steering):
        yield "ids of steering are unique"
    if old is None:
        return
    before, was = old["status"], old["spec"]
    if status["epoch"] < before["epoch"]:
        yield "epoch never falls"
    if Phase(before["phase"]).terminal and _of(before, "phase", "reason", "result") != _of(
        status, "phase", "reason", "result"
    ):
        yield "a finished task keeps its phase, reason and result"
    if _without_changeable(was) != _without_changeable(new["spec"]):
        yield "only desired, steering, priority and ttlSecondsAfterFinished of a task may change"
    if was["desired"] == Desired.CANCEL.value != new["spec"]["desired"]:
        yield "a cancelled task stays cancelled"
    if steering[: len(was["steering"])] != was["steering"]:
        yield "steering is append-only"


def _approval(old: Manifest | None, new: Manifest) -> Iterator[str]:
    spec, status = new["spec"], new["status"]
    votes = spec["decisions"]
    if status["phase"] == "Approved" and (
        len(votes) < spec["quorum"] or not all(vote["approved"] for vote in votes.values())
    ):
        yield "Approved needs a full quorum and no denial"
    if old is None:
        if votes:
            yield "an approval starts undecided"  # admission's, and what a worker asks it for when it starts
        return
    before, was = old["status"], old["spec"]
    if before["phase"] != "Pending" and _of(before, "phase", "choice", "decidedAt") != _of(
        status, "phase", "choice", "decidedAt"
    ):
        yield "a settled approval stays settled"
    terms = ("request", "approvers", "quorum", "requester", "expiresAt", "involved")
    if _of(was, *terms) != _of(spec, *terms):
        yield "the terms of an approval never change"
    if any(votes.get(user) != vote for user, vote in was["decisions"].items()):
        yield "a decision is final"


def _checkpoint(old: Manifest | None, new: Manifest) -> Iterator[str]:
    if old is not None and old["spec"] != new["spec"]:
        yield "a checkpoint never changes"


def _of(fields: Manifest, *names: str) -> list[object]:
    return [fields.get(name) for name in names]


def _without_changeable(spec: Manifest) -> Manifest:
    return {name: value for name, value in spec.items() if name not in CHANGEABLE}


_RULES: dict[Resource, Callable[[Manifest | None, Manifest], Iterator[str]]] = {
    TASKS: _task,
    APPROVALS: _approval,
    CHECKPOINTS: _checkpoint,
}
