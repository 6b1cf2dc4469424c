"""The reference of the kinds for people: one Markdown page out of the same schemas as the CRDs.

Owns how a schema is told; what it holds is the models' part.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from aura_operator.api.resource import Resource
from aura_operator.api.schema import Schema, structural_schema

_HEAD = """<!-- Generated from aura_operator/api by `make crds`. Changes go there. -->
# The kinds

Group `aura.mezmo.com`, version `v1alpha1`, all namespaced. References are to the same namespace. `kubectl explain`
shows the same on the command line. A field in **bold** is required.
"""


def reference_page(kinds: tuple[type[Resource], ...]) -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD, *(_section(kind) for kind in kinds)])


def _section(kind: type[Resource]) -> str:
    schema = structural_schema(kind)
    parts = {name: schema["properties"][name] for name in ("spec", "status") if name in schema["properties"]}
    rows = [row for name, part in parts.items() for row in _rows(name, part, required=name == "spec")]
    messages = list(_messages(schema))
    rules = ["", "The server holds to this, whoever writes:", "", *(f"- {message}" for message in messages)]
    return "\n".join(
        [
            f"## {kind.__name__} (`{kind.definition.short_name}`)",
            "",
            schema["description"],
            "",
            "| field | type | default | |",
            "| --- | --- | --- | --- |",
            *rows,
            *(rules if messages else []),
            "",
        ]
    )


def _rows(path: str, schema: Schema, *, required: bool) -> Iterator[str]:
    name = f"**`{path}`**" if required else f"`{path}`"
    default = f"`{json.dumps(schema['default'])}`" if "default" in schema else ""
    yield f"| {name} | {_type(schema)} | {default} | {schema.get('description', '').replace('|', chr(92) + '|')} |"
    inner, mark = (schema["items"], "[]") if "items" in schema else (schema, "")
    if isinstance(schema.get("additionalProperties"), dict):
        inner, mark = schema["additionalProperties"], ".*"
    for child, child_schema in inner.get("properties", {}).items():
        yield from _rows(f"{path}{mark}.{child}", child_schema, required=child in inner.get("required", ()))


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    name = f"list of {_type(schema['items'])}" if "items" in schema else str(schema.get("format", schema["type"]))
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if schema.get(key)]
    return f"{'integer' if name == 'int64' else name}{', ' if bounds else ''}{', '.join(bounds)}"


_BOUNDS = {"minimum": "from", "maximum": "to", "maxLength": "≤", "maxItems": "≤", "maxProperties": "≤"}


def _messages(schema: Schema) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield rule["message"]
    values = [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for child in (*schema.get("properties", {}).values(), *values):
        yield from _messages(child)
