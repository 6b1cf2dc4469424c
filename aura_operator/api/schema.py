"""From a pydantic model to the structural schema that a CRD holds.

Owns the conversion only; it knows no kind. Structural schemas have no references, no null and no free unions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from aura_operator.api.resource import KEEP_EMPTY_DEFAULT

Schema = dict[str, Any]

(_KEEP_EMPTY,) = KEEP_EMPTY_DEFAULT
_EMPTY: tuple[object, ...] = (None, "", [], {})


def structural_schema(model: type[BaseModel]) -> Schema:
    """The model's schema as Kubernetes takes it, references resolved."""
    generated = model.model_json_schema(by_alias=True, mode="validation")
    return _Conversion(generated.pop("$defs", {})).convert(generated)


class _Conversion:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions

    def convert(self, schema: Schema) -> Schema:
        schema = self._resolve(schema)
        if "oneOf" in schema:
            schema = self._merged_variants(schema)
        out: Schema = {}
        for key, value in schema.items():
            match key:
                case "title" | "discriminator":
                    continue
                case "properties":
                    out[key] = {name: self.convert(child) for name, child in value.items()}
                case "items":
                    out[key] = self.convert(value)
                case "additionalProperties":
                    if isinstance(value, dict):
                        out.update(self._map_values(value))
                case "const":
                    out["enum"] = [value]
                case "default":
                    out.update(_default(value, keep_empty=_KEEP_EMPTY in schema))
                case "description":
                    out[key] = " ".join(value.split())
                case _ if key != _KEEP_EMPTY:
                    out[key] = value
        if out.get("type") == "integer":
            out["format"] = "int64"
        return out

    def _resolve(self, schema: Schema) -> Schema:
        """Follows references and takes the null out of `X | None`; what stands beside a reference wins."""
        while "$ref" in schema or "anyOf" in schema:
            beside = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
            if "$ref" in schema:
                target = self._definitions[schema["$ref"].rsplit("/", 1)[-1]]
            else:
                kept = [variant for variant in schema["anyOf"] if variant.get("type") != "null"]
                if len(kept) != 1:
                    raise ValueError(f"a structural schema has no unions: {schema}")
                (target,) = kept
            schema = {**target, **beside}
        return schema

    def _map_values(self, values: Schema) -> Schema:
        converted = self.convert(values)
        # An empty schema is any JSON value, which a structural schema has to say in so many words.
        return {"additionalProperties": converted} if converted else {"x-kubernetes-preserve-unknown-fields": True}

    def _merged_variants(self, schema: Schema) -> Schema:
        """One object with the fields of all variants, and a CEL rule per variant that says which of them it has."""
        tag = schema["discriminator"]["propertyName"]
        variants = [self._resolve(variant) for variant in schema["oneOf"]]
        names = [name for variant in variants for name in variant["properties"]]
        properties: Schema = {}
        validations = []
        for variant in variants:
            (value,) = [variant["properties"][tag]["const"]]
            needed = [name for name in variant["required"] if name != tag]
            present = [f"has(self.{name})" for name in needed if names.count(name) < len(variants)]
            foreign = [f"!has(self.{name})" for name in dict.fromkeys(names) if name not in variant["properties"]]
            taken = ", ".join(name for name in variant["properties"] if name != tag)
            validations.append(
                {
                    "rule": f"self.{tag} != '{value}' || ({' && '.join(present + foreign)})",
                    "message": f"{tag} {value} takes {taken} and nothing else; needed: {', '.join(needed)}",
                }
            )
            properties = {**properties, **variant["properties"]}
        return {
            "type": "object",
            "description": schema.get("description", " Or: ".join(variant["description"] for variant in variants)),
            "required": [name for name in variants[0]["required"] if all(name in v["required"] for v in variants)],
            "properties": {
                **properties,
                tag: {
                    "type": "string",
                    "description": properties[tag].get("description", ""),
                    "enum": [variant["properties"][tag]["const"] for variant in variants],
                },
            },
            "x-kubernetes-validations": validations,
        }


def _default(value: Any, *, keep_empty: bool) -> Schema:
    """No null, and nothing empty: an absent list and an empty one mean the same, unless something is added to it."""
    if keep_empty:
        return {"default": value}
    bare = _without_empty(value)
    return {} if bare in _EMPTY else {"default": bare}


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _without_empty(child) for name, child in value.items()}
    return {name: child for name, child in inner.items() if child not in _EMPTY}
