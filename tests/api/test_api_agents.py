"""Agents on the real API server: whoever names a Secret may read it, and who has commands run may do so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.actors import OPERATOR_NAMESPACE, Actor, Object, await_true
from tests.api.objects import agent_object

Person = Callable[[str], Actor]

MODEL_KEY = {"model": {"name": "openai-chat:gpt-5", "apiKeySecretRef": {"name": "model-key", "key": "key"}}}
HEADERS = {
    "mcpServers": [
        {"name": "k8s", "transport": "StreamableHTTP", "url": "http://k8s", "headersSecretRef": {"name": "k8s-token"}}
    ]
}
STDIO = {"mcpServers": [{"name": "k8s", "transport": "Stdio", "command": "kubernetes-mcp-server"}]}


@pytest.fixture
def may_read(admin: Actor, fresh: str, place: str) -> Callable[[str, str], None]:
    """Lets a user read one Secret."""

    def grant(user: str, secret: str) -> None:
        name = f"{fresh}-{user}-{secret}"
        admin.does("create", "role", name, "--verb=get", "--resource=secrets", f"--resource-name={secret}")
        admin.does("create", "rolebinding", name, f"--role={name}", f"--user={user}")
        asked = ("auth", "can-i", "get", f"secrets/{secret}", f"--as={user}")
        await_true(lambda: admin.run(*asked).returncode == 0, f"{user} may read {secret}")

    return grant


@pytest.mark.behaviour(32)
@pytest.mark.parametrize(("spec", "secret"), [(MODEL_KEY, "model-key"), (HEADERS, "k8s-token")], ids=["model", "MCP"])
def test_whoever_names_a_secret_must_be_allowed_to_read_it(
    acting_as: Callable[[str], Actor],
    admin: Actor,
    may_read: Callable[[str, str], None],
    fresh: str,
    spec: Object,
    secret: str,
) -> None:
    author = f"author-{fresh}"
    admin.does("create", "rolebinding", author, "--clusterrole=aura-author", f"--user={author}")
    await_true(
        lambda: admin.run("auth", "can-i", "create", "ag", f"--as={author}").returncode == 0, "the role is in force"
    )
    said = acting_as(author).refused("create", "-f-", stdin=agent_object(fresh, **spec))
    assert f"you may not use a Secret that you may not read; this agent names: {secret}" in said
    may_read(author, secret)
    acting_as(author).create(agent_object(fresh, **spec))


@pytest.mark.behaviour(32)
def test_a_secret_is_not_sent_elsewhere_by_somebody_who_may_not_read_it(
    person: Person, admin: Actor, fresh: str
) -> None:
    admin.create(agent_object(fresh, **MODEL_KEY))
    elsewhere = {"spec": {"model": {"baseURL": "https://elsewhere.example"}}}
    assert "may not read; this agent names: model-key" in person("alice").refused_patch("ag", fresh, elsewhere)
    person("alice").patch("ag", fresh, {"metadata": {"labels": {"team": "db"}}})
    without = {"spec": {"model": {"apiKeySecretRef": None, "baseURL": "https://elsewhere.example"}}}
    person("alice").patch("ag", fresh, without)


@pytest.mark.behaviour(32)
def test_an_agent_without_secrets_needs_no_right_to_any(person: Person, fresh: str) -> None:
    person("alice").create(agent_object(fresh))


def test_commands_in_a_worker_need_a_verb_in_the_operators_namespace(
    acting_as: Callable[[str], Actor], admin: Actor, fresh: str
) -> None:
    author = f"author-{fresh}"
    # All rights in the own namespace don't include it.
    admin.does("create", "rolebinding", author, "--clusterrole=cluster-admin", f"--user={author}")
    await_true(
        lambda: admin.run("auth", "can-i", "create", "ag", f"--as={author}").returncode == 0, "the role is in force"
    )
    said = acting_as(author).refused("create", "-f-", stdin=agent_object(fresh, **STDIO))
    assert f"the verb run-commands on auraagents in namespace {OPERATOR_NAMESPACE} (Role aura-run-commands)" in said
    in_operators = (f"--namespace={OPERATOR_NAMESPACE}",)
    admin.does("create", "rolebinding", author, "--role=aura-run-commands", f"--user={author}", *in_operators)
    asked = ("auth", "can-i", "run-commands", "auraagents", f"--as={author}", *in_operators)
    await_true(lambda: admin.run(*asked).returncode == 0, "the verb is granted")
    acting_as(author).create(agent_object(fresh, **STDIO))


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ({"transport": "StreamableHTTP"}, "needed: name, url"),
        ({"transport": "StreamableHTTP", "url": "http://x", "command": "x"}, "transport StreamableHTTP takes"),
        ({"transport": "StreamableHTTP", "url": "http://x", "env": []}, "transport StreamableHTTP takes"),
        ({"transport": "Stdio"}, "needed: name, command"),
        ({"transport": "Stdio", "command": "x", "url": "http://x"}, "transport Stdio takes"),
        ({"transport": "Stdio", "command": "x", "headersSecretRef": {"name": "x"}}, "transport Stdio takes"),
        ({"transport": "Carrier"}, "supported values"),
        ({"transport": "StreamableHTTP", "url": "ftp://x"}, "should match"),
    ],
)
def test_each_transport_takes_its_own_fields(admin: Actor, fresh: str, server: Object, words: str) -> None:
    said = admin.refused("create", "-f-", stdin=agent_object(fresh, mcpServers=[{"name": "k8s", **server}]))
    assert words in said


def test_names_within_an_agent_are_unique(admin: Actor, fresh: str) -> None:
    server = {"name": "k8s", "transport": "StreamableHTTP", "url": "http://x"}
    said = admin.refused("create", "-f-", stdin=agent_object(fresh, mcpServers=[server, server]))
    assert "names of mcpServers are unique" in said
    sub = {"name": "db", "agentRef": {"name": "x"}, "description": "knows databases"}
    said = admin.refused("create", "-f-", stdin=agent_object(fresh, subAgents=[sub, sub]))
    assert "names of subAgents are unique" in said


@pytest.mark.parametrize("name", ["K8s", "a__b", "-a", "x" * 33])
def test_a_servers_name_fits_into_tool_names(admin: Actor, fresh: str, name: str) -> None:
    server = {"name": name, "transport": "StreamableHTTP", "url": "http://x"}
    assert "spec.mcpServers[0].name" in admin.refused("create", "-f-", stdin=agent_object(fresh, mcpServers=[server]))


def test_an_agent_is_cautious_where_its_author_says_nothing(admin: Actor, fresh: str) -> None:
    spec = admin.create(agent_object(fresh))["spec"]
    assert spec["model"] == {"name": "openai-chat:gpt-5", "timeoutSeconds": 120, "retries": 5}
    assert spec["approvals"] == {"quorum": 1, "fourEyes": True, "expiresAfterSeconds": 3600}
    assert spec["limits"] == {"turns": 50, "toolResultBytes": 131072, "recoveries": 5, "children": 16, "depth": 3}
