"""An object of each kind with every field that it can have. Owns no assertion."""

from __future__ import annotations

from aura_operator.api import AuraAgent, AuraApproval, AuraCheckpoint, AuraSession, AuraTask, Resource
from tests.api.actors import Object
from tests.api.objects import OWNER, agent_object, approval_object, checkpoint_object, request_object, task_object

T = "2026-11-29T03:00:00Z"
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "AllGood",
    "message": "ready",
    "lastTransitionTime": T,
    "observedGeneration": 1,
}

FULL_AGENT = agent_object(
    "full",
    model={
        "name": "openai-chat:gpt-5",
        "baseURL": "https://models.example/v1",
        "apiKeySecretRef": {"name": "key", "key": "token"},
        "settings": {"temperature": 0.5, "extra_body": {"deep": [1, "two", True]}},
        "timeoutSeconds": 60,
        "retries": 2,
    },
    systemPrompt="You look after databases.",
    mcpServers=[
        {
            "name": "k8s",
            "transport": "StreamableHTTP",
            "url": "http://mcp",
            "headersSecretRef": {"name": "token"},
            "timeoutSeconds": 30,
            "trustHints": True,
        },
        {
            "name": "shell",
            "transport": "Stdio",
            "command": "mcp",
            "args": ["-v"],
            "env": [{"name": "LANG", "value": "C"}],
            "timeoutSeconds": 30,
            "trustHints": False,
        },
    ],
    tools=[
        {
            "match": "k8s__*",
            "effect": "Idempotent",
            "approval": "Required",
            "timeoutSeconds": 60,
            "lookup": "k8s__find",
            "onInDoubt": "TellModel",
            "sensitive": True,
        }
    ],
    approvals={
        "approvers": {"users": ["bob"], "groups": ["oncall"]},
        "quorum": 2,
        "fourEyes": False,
        "expiresAfterSeconds": 60,
    },
    subAgents=[{"name": "db", "agentRef": {"name": "dba"}, "description": "knows databases"}],
    limits={"turns": 9, "tokens": 10000, "toolResultBytes": 2048, "recoveries": 3, "children": 1, "depth": 1},
) | {
    "status": {
        "observedGeneration": 1,
        "revision": "sre-1",
        "conditions": [CONDITION],
        "tools": [{"name": "k8s__x", "effect": "Once", "declared": False, "approval": "Required"}],
    }
}
FULL_TASK = task_object(
    "full",
    sessionRef={"name": "talk"},
    desired="Pause",
    steering=[{"id": "1", "text": "look at db-0", "by": "admin"}],
    priority=3,
    activeDeadlineSeconds=3600,
    ttlSecondsAfterFinished=60,
    requester="admin",
) | {
    "status": {
        "phase": "Running",
        "reason": "Claimed",
        "summary": "runs",
        "conditions": [CONDITION],
        "run": "run-1",
        "owner": {**OWNER, "endpoint": "10.0.0.1:8080", "streamKey": "k"},
        "epoch": 2,
        "agentRevision": "sre-1",
        "journal": {
            "schema": 1,
            "next": 7,
            "head": "ab",
            "entries": ['{"k":"claimed"}'],
            "sealed": {"name": "full-journal", "next": 6},
        },
        "waitingFor": [{"kind": kind, "name": "n", "until": T} for kind in ("Approval", "Timer", "Child", "Question")],
        "fired": ["n"],
        "unresolved": [{"call": 3, "tool": "pay__refund", "since": T}],
        "progress": {"steps": 4, "turns": 2, "at": T},
        "usage": {"requests": 2, "inputTokens": 300, "outputTokens": 40},
        "recoveries": 1,
        "lastEnd": {"worker": "w-1", "incarnation": "uid.0", "epoch": 1, "proof": "LeaseExpired", "at": T},
        "steering": {"consumed": 1},
        "result": {"ref": "full-result", "sha256": "0" * 64, "bytes": 70000},
        "trace": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
        "startedAt": T,
        "finishedAt": T,
    }
}
CHILD_TASK = task_object("child", requester="admin", parent={"name": "p", "uid": "u", "run": "r", "call": 3}) | {
    "status": {"phase": "Succeeded", "epoch": 1, "recoveries": 0, "result": {"secretRef": "s"}}
}
TEXT_TASK = task_object("text", requester="admin") | {
    "status": {"phase": "Failed", "reason": "Poisoned", "epoch": 1, "recoveries": 5, "result": {"text": "no"}}
}
FULL_APPROVAL = approval_object(
    "full",
    request=request_object(
        ask=1, toolSchemaDigest="sha256:" + "0" * 64, agentRevision="sre-1", notBefore=T, question="did it happen?"
    ),
) | {
    "status": {"phase": "Denied", "reason": "no", "votes": "0/1", "decidedAt": T, "choice": "Abort"},
}
STORED_APPROVAL = approval_object(
    "stored", request=request_object(arguments=None, argumentsRef={"kind": "Secret", "name": "full-arguments"})
)
FULL_CHECKPOINT = checkpoint_object(
    "full",
    type="Journal",
    encoding="GzipBase64",
    journal={"schema": 1, "first": 0, "next": 6, "headBefore": "a", "head": "b", "previous": ["older"]},
)
FULL_SESSION = {
    "apiVersion": "aura.mezmo.com/v1alpha1",
    "kind": "AuraSession",
    "metadata": {"name": "full"},
    "spec": {"agentRef": {"name": "sre"}},
    "status": {
        "conditions": [CONDITION],
        "active": {"task": "a", "uid": "1"},
        "queue": [{"task": "b", "uid": "2"}],
        "turns": [{"task": "z", "uid": "0", "outcome": "Aborted", "ref": "full-turn", "at": T}],
    },
}
SAMPLES: list[tuple[type[Resource], Object]] = [
    (AuraAgent, FULL_AGENT),
    (AuraTask, FULL_TASK),
    (AuraTask, CHILD_TASK),
    (AuraTask, TEXT_TASK),
    (AuraApproval, FULL_APPROVAL),
    (AuraApproval, STORED_APPROVAL),
    (AuraCheckpoint, FULL_CHECKPOINT),
    (AuraSession, FULL_SESSION),
]
