"""Field and label selectors on objects in memory. Owns their reading: `=`, `==`, `!=`, commas, `x=` for unset."""

from __future__ import annotations

from collections.abc import Iterator

from aura_operator.errors import ContentRejectedError
from aura_operator.store.commit import lookup
from aura_operator.store.interface import Selection
from aura_operator.store.resources import Manifest, Resource
from aura_operator.testing.memory_schema import definition_of


def check(selection: Selection) -> None:
    """Raises ContentRejectedError for a field that the server doesn't select by (400)."""
    known = {"metadata.name", "metadata.namespace", *_selectable(selection.resource)}
    for name, _, _ in _terms(selection.fields):
        if name not in known:
            raise ContentRejectedError(f"listing {selection.resource.plural}: field label not supported: {name} (400)")


def matches(selection: Selection, manifest: Manifest) -> bool:
    metadata = manifest["metadata"]
    if selection.namespace is not None and metadata["namespace"] != selection.namespace:
        return False
    labels = metadata.get("labels", {})
    return all(
        ((lookup(manifest, "/" + name.replace(".", "/")) or "") == value) is equal
        for name, equal, value in _terms(selection.fields)
    ) and all(
        (name in labels if value is None else labels.get(name) == value) is equal
        for name, equal, value in _terms(selection.labels)
    )


def _selectable(resource: Resource) -> Iterator[str]:
    definition = definition_of(resource)
    if definition is not None:
        yield from (path.removeprefix(".") for path in definition.selectable)


def _terms(selector: str) -> Iterator[tuple[str, bool, str | None]]:
    """Name, whether it must be equal, and the value (None: it must only be there)."""
    for term in filter(None, selector.split(",")):
        if "!=" in term:
            name, _, value = term.partition("!=")
            yield name, False, value
        elif "=" in term:
            name, _, value = term.replace("==", "=").partition("=")
            yield name, True, value
        else:
            yield term, True, None
