"""The kinds that this project reads and writes, and references to single objects of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aura_operator.errors import UnreadableObjectError

Manifest = dict[str, Any]
"""An object as the API server returned it (parsed JSON). Everybody treats it as immutable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind as it stands in URLs. `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


def _aura(plural: str, kind: str) -> Resource:
    return Resource(group="aura.mezmo.com", version="v1alpha1", plural=plural, kind=kind)


AGENTS = _aura("auraagents", "AuraAgent")
APPROVALS = _aura("auraapprovals", "AuraApproval")
CHECKPOINTS = _aura("auracheckpoints", "AuraCheckpoint")
TASKS = _aura("auratasks", "AuraTask")
EVENTS = Resource(group="events.k8s.io", version="v1", plural="events", kind="Event")
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
REVISIONS = Resource(group="apps", version="v1", plural="controllerrevisions", kind="ControllerRevision")
SECRETS = Resource(group="", version="v1", plural="secrets", kind="Secret")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """One object."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.namespace}/{self.name}"


def new(resource: Resource, namespace: str, name: str, **content: Any) -> Manifest:
    """The manifest of an object that is to be created."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"namespace": namespace, "name": name},
        **content,
    }


def owned_by(manifest: Manifest, owner: Manifest) -> Manifest:
    """The same manifest, garbage-collected with `owner` (in the same namespace)."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return manifest | {"metadata": manifest["metadata"] | {"ownerReferences": [reference]}}


def unreadable(resource: Resource, manifest: Manifest, error: Exception) -> UnreadableObjectError:
    """The error for an object of that kind that makes no view, for the reason that `error` gives."""
    metadata = manifest.get("metadata", {})
    name = f"{metadata.get('namespace', '?')}/{metadata.get('name', '?')}"
    return UnreadableObjectError(f"{resource.kind} {name} can't be read by this version: {error!r}")
