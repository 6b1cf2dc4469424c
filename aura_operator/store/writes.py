"""A conditional write on a status, and what all of them are made of. commit.py sends them.

All are JSON Patches whose tests say under which circumstances they hold, and each knows how to see in the object
whether it has landed. No resourceVersion is used, so that a user's patch of the spec never makes one fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aura_operator.core.lifecycle import Phase
from aura_operator.store.interface import Op, add, expect
from aura_operator.store.resources import Manifest, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One conditional write. `landed` tells from the object, read later, whether this very write was carried out."""

    name: str
    ref: Ref
    ops: tuple[Op, ...]
    landed: Callable[[Manifest], bool]


def same(uid: str) -> tuple[Op, ...]:
    """It is still that very object."""
    return (expect("/metadata/uid", uid),)


def puts(fields: Mapping[str, object]) -> tuple[Op, ...]:
    """Sets fields of the status."""
    return tuple(add(f"/status/{name}", value) for name, value in fields.items())


def later_than(epoch: int) -> Callable[[Manifest], bool]:
    def landed(manifest: Manifest) -> bool:
        status = manifest["status"]
        return bool(status["epoch"] > epoch or status["phase"] != Phase.RUNNING.value)

    return landed
