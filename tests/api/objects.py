"""Objects to begin with, as YAML would say them. Each function takes the fields that differ."""

from __future__ import annotations

from tests.api.actors import ODD_USER, Object

NO_ARGUMENTS_DIGEST = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

OWNER: Object = {"worker": "w-0", "incarnation": "uid.1", "since": "2026-11-29T03:00:00Z"}


def task_object(name: str, **spec: object) -> Object:
    return {
        "apiVersion": "aura.mezmo.com/v1alpha1",
        "kind": "AuraTask",
        "metadata": {"name": name},
        "spec": {"agentRef": {"name": "sre"}, "input": "why is db-0 slow?", **spec},
    }


def agent_object(name: str, **spec: object) -> Object:
    return {
        "apiVersion": "aura.mezmo.com/v1alpha1",
        "kind": "AuraAgent",
        "metadata": {"name": name},
        "spec": {"model": {"name": "openai-chat:gpt-5"}, **spec},
    }


def request_object(**changes: object) -> Object:
    """What an approval asks; a change to None takes the field away."""
    request = {
        "task": "disk-7f3",
        "run": "run-1",
        "call": 9,
        "kind": "ToolCall",
        "tool": "k8s__delete_pod",
        "effect": "Once",
        "arguments": "{}",
        "digest": NO_ARGUMENTS_DIGEST,
        **changes,
    }
    return {name: value for name, value in request.items() if value is not None}


def approval_object(name: str, *, request: Object | None = None, **spec: object) -> Object:
    return {
        "apiVersion": "aura.mezmo.com/v1alpha1",
        "kind": "AuraApproval",
        "metadata": {"name": name},
        "spec": {
            "request": request or request_object(),
            "approvers": {"users": ["alice", ODD_USER], "groups": ["sre-oncall"]},
            "quorum": 1,
            "requester": "alice",
            "involved": ["alice"],
            "expiresAt": "2126-11-29T03:40:00Z",
            **spec,
        },
    }


def checkpoint_object(name: str, **spec: object) -> Object:
    return {
        "apiVersion": "aura.mezmo.com/v1alpha1",
        "kind": "AuraCheckpoint",
        "metadata": {"name": name},
        "spec": {
            "owner": {"kind": "AuraTask", "name": "disk-7f3", "uid": "0"},
            "type": "Payload",
            "encoding": "Plain",
            "data": "x",
            "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
            "bytes": 1,
            **spec,
        },
    }
