"""Arguments, digests and the built-in sleep: what a model is told before anything is sent."""

from __future__ import annotations

import json

import pytest
from mcp_types import Tool

from aura_operator.agent.arguments import check, unknown_tool
from aura_operator.agent.mcp.catalogue import catalogued
from aura_operator.agent.mcp.servers import ServerSpec, Transport
from aura_operator.agent.specs import ToolSpec
from aura_operator.core.digests import schema_digest

SCALE = ToolSpec(
    name="k8s__scale",
    server="k8s",
    description="",
    input_schema={
        "type": "object",
        "properties": {"replicas": {"type": "integer"}, "to": {"$ref": "#/$defs/target"}},
        "required": ["replicas"],
        "$defs": {
            "target": {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}}
        },
    },
    schema_digest="",
)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"replicas": 2}', None),
        ('{"replicas": 2, "to": {"names": ["db-0"]}}', None),
        ('{"replicas": "2"}', "replicas: '2' is not of type 'integer'"),
        ('{"replicas": 2, "to": {"names": ["a", 7]}}', "to.names[1]: 7 is not of type 'string'"),
        ("{}", "'replicas' is a required property"),
        ("null", "must be a JSON object, not null"),
        ('"{}"', "must be a JSON object, not a string"),
        ('{"replicas": 2', "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_violation_is_told_with_its_place(arguments: str, words: str | None) -> None:
    message = check(arguments, SCALE)

    assert message is None if words is None else message is not None and words in message


def test_a_long_offending_value_does_not_come_back_whole() -> None:
    message = check(json.dumps({"replicas": "x" * 100_000}), SCALE)
    assert message is not None and len(message) < 500


def test_a_schema_that_is_itself_broken_forbids_nothing() -> None:
    broken = ToolSpec(name="t", server="s", description="", input_schema={"type": "nonsense"}, schema_digest="")
    elsewhere = ToolSpec(
        name="t", server="s", description="", input_schema={"$ref": "https://example.invalid/x"}, schema_digest=""
    )
    assert check('{"a": 1}', broken) is None
    assert check('{"a": 1}', elsewhere) is None


def test_an_unknown_tool_is_told_with_the_known_ones() -> None:
    assert unknown_tool("a__x", ["b__y", "a__z"]) == "unknown tool 'a__x'; there are: a__z, b__y"
    assert "and 60 more" in unknown_tool("x", [f"t{number}" for number in range(100)])


def test_the_digest_changes_with_what_a_tool_accepts_and_with_nothing_else() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    digest = schema_digest("s__t", schema)

    assert digest == schema_digest("s__t", json.loads('{"properties":{"a":{"type":"string"}},"type":"object"}'))
    assert digest != schema_digest("s__u", schema)
    assert digest != schema_digest("s__t", {**schema, "required": ["a"]})


def test_tools_that_can_not_have_their_name_are_left_out_with_a_reason() -> None:
    server = ServerSpec(name="srv", transport=Transport.STDIO, command="x")
    names = ["good", "good", "with space", "l" * 60, "taken"]
    tools = [Tool(name=name, input_schema={"type": "object"}) for name in names]

    offered, remote_names, refused = catalogued(server, tools, taken={"srv__taken"})

    assert list(offered) == ["srv__good"] and remote_names == {"srv__good": "good"}
    assert "another tool has this name" in refused["srv__good"]
    assert "letters, digits" in refused["srv__with space"]
    assert "65 characters and providers accept 64" in refused["srv__" + "l" * 60]
    assert "rename one of the servers" in refused["srv__taken"]
