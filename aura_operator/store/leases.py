"""Leases as Kubernetes writes them: the patches that take and renew one, and reading one. Owns the object's form.

Not here: sending them (lease_holder.py), who may take one, and what a lost one means.
"""

from __future__ import annotations

from aura_operator.core.instants import to_micro_text
from aura_operator.core.ownership import LeaseView
from aura_operator.store.interface import Op, add, expect
from aura_operator.store.resources import LEASES, Manifest, Ref, new

POD_UID = "aura.mezmo.com/pod-uid"
FREE_SLOTS = "aura.mezmo.com/free-slots"
JOURNAL_SCHEMA = "aura.mezmo.com/journal-schema"
ROLE = "aura.mezmo.com/role"
WORKER_SELECTOR = f"{ROLE}=worker"


def lease_ref(namespace: str, name: str) -> Ref:
    return Ref(resource=LEASES, namespace=namespace, name=name)


def new_lease(ref: Ref, *, holder: str, seconds: int, now: float, role: str, annotations: dict[str, str]) -> Manifest:
    """A Lease that `holder` takes by creating it."""
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "acquireTime": to_micro_text(now),
        "renewTime": to_micro_text(now),
        "leaseTransitions": 0,
    }
    manifest = new(LEASES, ref.namespace, ref.name, spec=spec)
    manifest["metadata"] |= {"labels": {ROLE: role}, "annotations": annotations}
    return manifest


def renewal(holder: str, now: float, annotations: dict[str, str]) -> list[Op]:
    """Renews a Lease that is still `holder`'s."""
    return [
        expect("/spec/holderIdentity", holder),
        add("/spec/renewTime", to_micro_text(now)),
        *(add(f"/metadata/annotations/{_escaped(name)}", value) for name, value in annotations.items()),
    ]


def takeover(found: Manifest, *, holder: str, now: float, annotations: dict[str, str]) -> list[Op]:
    """Takes a Lease exactly as it was found: of several who try, one wins."""
    spec = found.get("spec", {})  # as somebody's hands may have left it
    taken = {
        "holderIdentity": holder,
        "acquireTime": to_micro_text(now),
        "renewTime": to_micro_text(now),
        "leaseTransitions": spec.get("leaseTransitions", 0) + 1,
    }
    return [
        expect("/metadata/uid", found["metadata"]["uid"]),
        expect("/spec/holderIdentity", spec.get("holderIdentity")),
        expect("/spec/renewTime", spec.get("renewTime")),
        add("/spec", {**spec, **taken}),
        # As a whole: a single one can't be set where there are none, and a Lease like that could never be taken.
        add("/metadata/annotations", found["metadata"].get("annotations", {}) | annotations),
    ]


def lease_view(manifest: Manifest) -> LeaseView:
    """A worker's Lease. Annotations that are missing count as no Pod and no slots."""
    annotations = manifest["metadata"].get("annotations", {})
    spec = manifest.get("spec", {})
    slots, schema = annotations.get(FREE_SLOTS, "0"), annotations.get(JOURNAL_SCHEMA, "1")
    return LeaseView(
        worker=manifest["metadata"]["name"],
        incarnation=spec.get("holderIdentity", ""),
        pod_uid=annotations.get(POD_UID, ""),
        duration_seconds=float(spec.get("leaseDurationSeconds", 15)),
        free_slots=int(slots) if slots.isdigit() else 0,
        journal_schema=int(schema) if schema.isdigit() else 1,
    )


def renew_time(manifest: Manifest) -> str:
    """What changes with each renewal. Compared for equality only: it is the writer's clock."""
    time: str = manifest.get("spec", {}).get("renewTime", "")
    return time


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
