"""Entries as JSON lines and back: `{"k": kind, "at": time, …}`, one line each, defaults left out.

Owns the format of schema 1, which is stored for ever: fields may be added with a default, never renamed.
Must not know what an entry means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from aura_operator.core.effects import Effect, OnInDoubt
from aura_operator.core.entries import (
    CallPlan,
    Choice,
    Claimed,
    Control,
    Controlled,
    Decided,
    Entry,
    Finished,
    Intent,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Proof,
    Requested,
    RequestKind,
    Result,
    Slept,
    SteeringConsumed,
    ToldInDoubt,
    Usage,
    Verdict,
)
from aura_operator.core.instants import from_text, to_text
from aura_operator.core.lifecycle import Phase
from aura_operator.core.text import dumps
from aura_operator.core.transcript import Inline, Payload, Secret, Stored
from aura_operator.errors import JournalError

Fields = dict[str, Any]


def encode(entry: Entry) -> str:
    """The line of an entry. Lone surrogates, which no UTF-8 text can hold, become U+FFFD first."""
    kind, write, _ = _BY_CLASS[type(entry)]
    fields: Fields = {"k": kind, "at": to_text(entry.at), **write(entry)}
    return dumps({name: value for name, value in fields.items() if value is not None})


def decode(line: str) -> Entry:
    """The entry of a line. Raises JournalError for a line that this version can't read."""
    try:
        fields: Fields = orjson.loads(line)
        read = _BY_KIND[fields["k"]]
        return read(from_text(fields["at"]), fields)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise JournalError(f"a journal entry can't be read ({error!r}): {line[:200]}") from error


def payload_fields(payload: Payload) -> Any:
    """How a payload stands in a line: the text itself, or where it is."""
    match payload:
        case Inline(text=text):
            return text
        case Stored(name=name, sha256=sha256, size_bytes=size):
            return {"ref": name, "sha256": sha256, "bytes": size}
        case Secret(name=name, size_bytes=size):
            return {"secretRef": name, "bytes": size}


def payload_of(fields: Any) -> Payload:
    if isinstance(fields, str):
        return Inline(text=fields)
    if "secretRef" in fields:
        return Secret(name=fields["secretRef"], size_bytes=fields["bytes"])
    return Stored(name=fields["ref"], sha256=fields["sha256"], size_bytes=fields["bytes"])


_PLAN_DEFAULTS = CallPlan(call=0, part=0, tool="")


def _plan_fields(plan: CallPlan) -> Fields:
    fields: Fields = {"call": plan.call, "part": plan.part, "tool": plan.tool}
    optional: tuple[tuple[str, Any, Any], ...] = (
        ("effect", plan.effect.value, _PLAN_DEFAULTS.effect.value),
        ("hinted", not plan.declared, False),
        ("approval", plan.approval, False),
        ("timeout", plan.timeout_seconds, _PLAN_DEFAULTS.timeout_seconds),
        ("onInDoubt", plan.on_in_doubt.value, _PLAN_DEFAULTS.on_in_doubt.value),
        ("sensitive", plan.sensitive, False),
        ("digest", plan.digest, ""),
        ("schema", plan.schema, ""),
        ("refused", plan.refused, None),
        ("timer", plan.timer_seconds, None),
    )
    return fields | {name: value for name, value, default in optional if value != default}


def _plan_of(fields: Fields) -> CallPlan:
    return CallPlan(
        call=fields["call"],
        part=fields["part"],
        tool=fields["tool"],
        effect=Effect(fields.get("effect", _PLAN_DEFAULTS.effect.value)),
        declared=not fields.get("hinted", False),
        approval=fields.get("approval", False),
        timeout_seconds=fields.get("timeout", _PLAN_DEFAULTS.timeout_seconds),
        on_in_doubt=OnInDoubt(fields.get("onInDoubt", _PLAN_DEFAULTS.on_in_doubt.value)),
        sensitive=fields.get("sensitive", False),
        digest=fields.get("digest", ""),
        schema=fields.get("schema", ""),
        refused=fields.get("refused"),
        timer_seconds=fields.get("timer"),
    )


def _usage_fields(usage: Usage) -> list[int]:
    return [usage.requests, usage.input_tokens, usage.output_tokens]


def _usage_of(fields: list[int]) -> Usage:
    return Usage(requests=fields[0], input_tokens=fields[1], output_tokens=fields[2])


def _optional_text(at: float | None) -> str | None:
    return None if at is None else to_text(at)


def _optional_instant(text: str | None) -> float | None:
    return None if text is None else from_text(text)


def _choice(text: str | None) -> Choice | None:
    return None if text is None else Choice(text)


_KINDS: tuple[tuple[str, type[Any], Callable[[Any], Fields], Callable[[float, Fields], Entry]], ...] = (
    (
        "claimed",
        Claimed,
        lambda e: {
            "epoch": e.epoch,
            "worker": e.worker,
            "incarnation": e.incarnation,
            "revision": e.revision,
            "proof": e.proof and e.proof.value,
        },
        lambda at, f: Claimed(
            at=at,
            epoch=f["epoch"],
            worker=f["worker"],
            incarnation=f["incarnation"],
            revision=f["revision"],
            proof=Proof(f["proof"]) if "proof" in f else None,
        ),
    ),
    (
        "model",
        ModelAnswered,
        lambda e: {
            "started": to_text(e.started),
            "usage": _usage_fields(e.usage),
            "calls": [_plan_fields(plan) for plan in e.calls] or None,
            "payload": payload_fields(e.payload),
        },
        lambda at, f: ModelAnswered(
            at=at,
            started=from_text(f["started"]),
            payload=payload_of(f["payload"]),
            calls=tuple(_plan_of(plan) for plan in f.get("calls", ())),
            usage=_usage_of(f["usage"]),
        ),
    ),
    (
        "model-failed",
        ModelFailed,
        lambda e: {"reason": e.reason, "message": e.message, "retryAt": _optional_text(e.retry_at)},
        lambda at, f: ModelFailed(
            at=at, reason=f["reason"], message=f["message"], retry_at=_optional_instant(f.get("retryAt"))
        ),
    ),
    (
        "intent",
        Intent,
        lambda e: {"call": e.call, "key": e.key, "ask": e.ask},
        lambda at, f: Intent(at=at, call=f["call"], key=f["key"], ask=f.get("ask")),
    ),
    (
        "result",
        Result,
        lambda e: {
            "call": e.call,
            "outcome": None if e.outcome is Outcome.OK else e.outcome.value,
            "started": _optional_text(e.started),
            "payload": payload_fields(e.payload),
        },
        lambda at, f: Result(
            at=at,
            call=f["call"],
            outcome=Outcome(f.get("outcome", Outcome.OK.value)),
            payload=payload_of(f["payload"]),
            started=_optional_instant(f.get("started")),
        ),
    ),
    (
        "requested",
        Requested,
        lambda e: {
            "call": e.call,
            "ask": e.ask,
            "kind": e.kind.value,
            "expiresAt": to_text(e.expires_at),
            "schema": e.schema or None,
            "notBefore": _optional_text(e.not_before),
        },
        lambda at, f: Requested(
            at=at,
            call=f["call"],
            ask=f["ask"],
            kind=RequestKind(f["kind"]),
            expires_at=from_text(f["expiresAt"]),
            schema=f.get("schema", ""),
            not_before=_optional_instant(f.get("notBefore")),
        ),
    ),
    (
        "decided",
        Decided,
        lambda e: {
            "call": e.call,
            "ask": e.ask,
            "verdict": e.verdict.value,
            "by": list(e.by) or None,
            "choice": e.choice and e.choice.value,
            "reason": e.reason,
        },
        lambda at, f: Decided(
            at=at,
            call=f["call"],
            ask=f["ask"],
            verdict=Verdict(f["verdict"]),
            by=tuple(f.get("by", ())),
            choice=_choice(f.get("choice")),
            reason=f["reason"],
        ),
    ),
    (
        "slept",
        Slept,
        lambda e: {"call": e.call, "interrupted": e.interrupted or None},
        lambda at, f: Slept(at=at, call=f["call"], interrupted=f.get("interrupted", False)),
    ),
    (
        "told-in-doubt",
        ToldInDoubt,
        lambda e: {"call": e.call},
        lambda at, f: ToldInDoubt(at=at, call=f["call"]),
    ),
    (
        "steered",
        SteeringConsumed,
        lambda e: {"position": e.position, "by": e.by, "text": e.text},
        lambda at, f: SteeringConsumed(at=at, position=f["position"], by=f["by"], text=f["text"]),
    ),
    (
        "control",
        Controlled,
        lambda e: {"control": e.control.value},
        lambda at, f: Controlled(at=at, control=Control(f["control"])),
    ),
    (
        "finished",
        Finished,
        lambda e: {"phase": e.phase.value, "reason": e.reason, "message": e.message or None},
        lambda at, f: Finished(at=at, phase=Phase(f["phase"]), reason=f["reason"], message=f.get("message", "")),
    ),
)

_BY_CLASS = {cls: (kind, write, read) for kind, cls, write, read in _KINDS}
_BY_KIND = {kind: read for kind, _, _, read in _KINDS}
