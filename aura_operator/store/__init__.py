"""The Kubernetes API as the store: a small client, and every write that changes ownership or the journal.

`Store` is a port: whoever implements one checks it with aura_operator.testing.
"""

from __future__ import annotations

from aura_operator.store.interface import Op, Page, Selection, Store, WatchEvent, WatchKind, add, expect, remove
from aura_operator.store.resources import Manifest, Ref, Resource

__all__ = [
    "Manifest",
    "Op",
    "Page",
    "Ref",
    "Resource",
    "Selection",
    "Store",
    "WatchEvent",
    "WatchKind",
    "add",
    "expect",
    "remove",
]
