"""Writes crds/*.yaml and their reference from the models: `python -m hack.crds [--check]`.

Owns the frame of a CRD; its schema comes from aura_operator/api/schema.py, the page from reference.py beside that.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from aura_operator.api import GROUP, KINDS, VERSION
from aura_operator.api.reference import reference_page
from aura_operator.api.resource import Column, Resource
from aura_operator.api.schema import Schema, structural_schema
from hack.cluster import CHECKOUT

HEADER = "# Generated from aura_operator/api by `make crds`. Changes go there.\n"
REFERENCE = Path("docs", "reference", "crds.md")


def custom_resource_definition(kind: type[Resource]) -> dict[str, Any]:
    """The CRD of one kind as a JSON object."""
    definition = kind.definition
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
        "schema": {"openAPIV3Schema": _root_schema(kind)},
    }
    if definition.has_status:
        version["subresources"] = {"status": {}}
    if definition.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.__name__,
                "listKind": f"{kind.__name__}List",
                "plural": definition.plural,
                "singular": kind.__name__.lower(),
                "shortNames": [definition.short_name],
                "categories": ["aura"],
            },
            "versions": [version],
        },
    }


def _root_schema(kind: type[Resource]) -> Schema:
    schema = structural_schema(kind)
    for added_by_server in ("apiVersion", "kind"):
        del schema["properties"][added_by_server]
    # Of metadata a CRD may bound the name and nothing else.
    name = {"type": "string", "maxLength": kind.definition.name_max_length}
    schema["properties"]["metadata"] = {"type": "object", "properties": {"name": name}}
    # Without it the merge patch {"spec": null} would wipe the object, past all transition rules.
    schema["required"] = ["spec"]
    return schema


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**shown, "priority": 1} if column.wide_only else shown


class _Dumper(yaml.SafeDumper):
    """No aliases: what a model uses twice stands there twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def manifests() -> dict[str, str]:
    """File name and text of each CRD."""
    return {
        f"{kind.definition.plural}.yaml": HEADER
        + yaml.dump(custom_resource_definition(kind), Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
        for kind in KINDS
    }


def main(arguments: list[str] | None = None) -> int:
    """Writes the files, or with --check says which differ. Exit code 1 if any does."""
    parser = argparse.ArgumentParser(prog="python -m hack.crds", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs")
    parser.add_argument("--root", type=Path, default=CHECKOUT, help="the checkout to write to (default: this one)")
    options = parser.parse_args(arguments)
    root: Path = options.root
    wanted = {Path("crds", name): text for name, text in manifests().items()} | {REFERENCE: reference_page(KINDS)}
    if options.check:
        there = {path.relative_to(root) for path in (root / "crds").glob("*.yaml")}
        stale = sorted((there - set(wanted)) | {path for path, text in wanted.items() if not _holds(root / path, text)})
        for path in stale:
            print(f"{path} isn't what the models say: run `make crds`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in wanted.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return 0


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
