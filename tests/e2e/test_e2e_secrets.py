"""What is sensitive is in Secrets and nowhere else: no status, approval, checkpoint, event or log shows it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from aura_operator.store.resources import SECRETS, new
from aura_operator.testing.ledger import Ledger
from aura_operator.testing.openai_server import FakeCall, FakeReply, openai_server
from hack.kubectl import Kubectl
from tests.processes import Processes
from tests.stage import Stage

pytestmark = pytest.mark.behaviour(32)

ARGUMENT = "hunter2-argument-4711"
RESULT = "hunter2-result-0815"
KEY = "sk-hunter2-model-key-99"
HEADER = "hunter2-header-token-77"
KINDS = "auratasks,auraapprovals,auracheckpoints,auraagents,controllerrevisions,events,leases,configmaps"


def shown(kubectl: Kubectl, processes: Processes) -> str:
    """All that anybody without a right to Secrets, or whoever reads the logs, can see; compressed parts unpacked."""
    objects = kubectl.json("get", KINDS)
    parts = [json.dumps(objects), kubectl("get", "events.events.k8s.io", "--output", "json")]
    parts += [kubectl("describe", "auratasks,auraapprovals,auracheckpoints")]
    for item in objects["items"]:
        if item.get("spec", {}).get("encoding") == "GzipBase64":
            parts.append(gzip.decompress(base64.b64decode(item["spec"]["data"])).decode())
    parts += [process.log.read_text() for process in processes.started]
    return "\n".join(parts)


def hidden(text: str, *secrets: str) -> None:
    for secret in secrets:
        for form in (secret, base64.b64encode(secret.encode()).decode().rstrip("="), secret.encode().hex()):
            assert form not in text, (
                f"{secret} is shown: …{text[max(0, text.find(form) - 300) : text.find(form) + 80]}…"
            )


async def kept(stage: Stage) -> str:
    """What is in the Secrets that a task owns."""
    owned = [item for item in await stage.all(SECRETS) if item["metadata"].get("ownerReferences")]
    return "\n".join(base64.b64decode(value).decode() for item in owned for value in item["data"].values())


async def secret(stage: Stage, name: str, **data: str) -> None:
    manifest = new(SECRETS, stage.namespace, name, type="Opaque")
    manifest["stringData"] = data
    await stage.store.create(SECRETS, manifest)


def agent_parts(stage: Stage, url: str, *, approval: str, effect: str) -> dict[str, Any]:
    return {
        "model": {
            "name": "openai-chat:fake",
            "baseURL": url,
            "apiKeySecretRef": {"name": "model-key", "key": "key"},
            "retries": 1,
        },
        "mcpServers": [
            {
                "name": "led",
                "transport": "StreamableHTTP",
                "url": stage.ledger_url,
                "headersSecretRef": {"name": "headers"},
            }
        ],
        "tools": [{"match": "led__*", "effect": effect, "approval": approval, "sensitive": True, "timeoutSeconds": 2}],
    }


async def test_sensitive_arguments_and_results_are_in_secrets_alone(
    stage: Stage, processes: Processes, ledger: Ledger, kubectl: Kubectl, approve: Callable[..., None]
) -> None:
    arguments = json.dumps({"key": ARGUMENT, "text": RESULT + " x" * 3000})
    async with openai_server(
        FakeReply(text="let me see", calls=(FakeCall(tool="led__once", arguments=arguments),)),
        FakeReply(text="all is well"),
    ) as model:
        await secret(stage, "model-key", key=KEY)
        await secret(stage, "headers", Authorization=f"Bearer {HEADER}")
        await stage.agent([], **agent_parts(stage, model.url, approval="Required", effect="Once"))
        await stage.task()
        processes.controller()
        first = processes.worker()
        await stage.until_phase("one", "Waiting")
        hidden(shown(kubectl, processes), ARGUMENT, RESULT, KEY, HEADER)
        reference = (await stage.approval("one-1"))["spec"]["request"]["argumentsRef"]
        assert reference["kind"] == "Secret"
        assert ARGUMENT in kubectl("get", "secret", reference["name"], "--output", "jsonpath={.data}") or await kept(
            stage
        )
        # Another worker has to find them again.
        first.kill9()
        processes.worker()
        approve("one-1")
        await stage.done()
        hidden(shown(kubectl, processes), ARGUMENT, RESULT, KEY, HEADER)
        (line,) = ledger.starts("once")
        assert line.key == ARGUMENT, "the tool had the real thing"
        assert RESULT in json.dumps(model.requests[-1]), "and so had the model"
        assert set(model.keys) == {KEY}
        found = await kept(stage)
        assert ARGUMENT in found and RESULT in found


async def test_what_goes_wrong_with_a_sensitive_call_is_not_told_either(
    stage: Stage, processes: Processes, ledger: Ledger, kubectl: Kubectl
) -> None:
    bad = [
        json.dumps({"key": ARGUMENT, "wrong": RESULT}),
        json.dumps({"key": ARGUMENT, "seconds": RESULT}),
        f'{{"key": "{ARGUMENT}',
        json.dumps({"key": ARGUMENT, "fail": True, "text": RESULT}),
        json.dumps({"key": ARGUMENT, "hang": True, "text": RESULT}),
    ]
    replies = [FakeReply(calls=(FakeCall(tool="led__read", arguments=text),)) for text in bad]
    async with openai_server(*replies, FakeReply(text="all is well")) as model:
        await secret(stage, "model-key", key=KEY)
        await secret(stage, "headers", Authorization=f"Bearer {HEADER}")
        await stage.agent([], **agent_parts(stage, model.url, approval="NotRequired", effect="Read"))
        await stage.task()
        processes.controller()
        processes.worker()
        await stage.done()
        hidden(shown(kubectl, processes), ARGUMENT, RESULT, KEY, HEADER)
        told = json.dumps(model.requests[-1])
        assert "failed as asked" in told and "no answer within the call's time" in told


async def test_an_api_key_that_the_provider_repeats_in_its_refusal_is_not_told(
    stage: Stage, processes: Processes, kubectl: Kubectl
) -> None:
    refusal = FakeReply(status=401, message=f"Incorrect API key provided: {KEY}", code="invalid_api_key")
    async with openai_server(refusal) as model:
        await secret(stage, "model-key", key=KEY)
        await secret(stage, "headers", Authorization=f"Bearer {HEADER}")
        await stage.agent([], **agent_parts(stage, model.url, approval="NotRequired", effect="Read"))
        await stage.task()
        processes.controller()
        processes.worker()
        status = await stage.until_phase("one", "Failed", "Succeeded")
        assert status["phase"] == "Failed" and "401" in status["summary"]
        hidden(shown(kubectl, processes), KEY, HEADER)


async def test_a_header_that_its_server_refuses_is_not_told(
    stage: Stage, processes: Processes, kubectl: Kubectl
) -> None:
    refusal = FakeReply(status=401, message=f"bad token {HEADER}")
    async with openai_server(refusal) as server, openai_server(FakeReply(text="never")) as model:
        await secret(stage, "model-key", key=KEY)
        await secret(stage, "headers", Authorization=f"Bearer {HEADER}")
        parts = agent_parts(stage, model.url, approval="NotRequired", effect="Read")
        parts["mcpServers"][0]["url"] = server.url
        await stage.agent([], **parts)
        await stage.task()
        processes.controller()
        processes.worker()
        status = await stage.until_phase("one", "Failed", "Succeeded")
        assert status["phase"] == "Failed" and "led" in status["summary"]
        hidden(shown(kubectl, processes), KEY, HEADER)
