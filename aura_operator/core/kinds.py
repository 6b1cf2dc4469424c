"""Each kind of journal entry as it stands in a line: its name, both directions, and the schema that reading it takes.

Owns the format of the fields, which is stored for ever: they may be added with a default, never renamed; what an older
version would misread needs a higher number. Must not know what an entry means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, assert_never

from aura_operator.core.effects import Effect, OnInDoubt
from aura_operator.core.entries import (
    Choice,
    Claimed,
    Control,
    Controlled,
    Decided,
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
from aura_operator.core.plan import CallPlan
from aura_operator.core.transcript import Inline, Payload, Secret, Stored

QUESTIONS_SINCE = 2  # plans, requests and decisions of questions to people

Fields = dict[str, Any]
E = TypeVar("E")
W = TypeVar("W", bound=Enum)


@dataclass(frozen=True, kw_only=True)  # no slots: a subscripted class marks its instances
class Kind(Generic[E]):
    """One kind of entry: its name in a line, both directions, and the schema that reading it takes.

    `since` is the first schema that has the kind; `needs` says where an entry's content needs a later one.
    """

    name: str
    entry: type[E]
    write: Callable[[E], Fields]
    read: Callable[[float, Fields], E]
    since: int = 1
    needs: Callable[[E], int] = lambda _: 1


class UnknownWordError(Exception):
    """A word that an enum of this version doesn't have."""


def _word(words: type[W], value: str) -> W:
    try:
        return words(value)
    except ValueError:
        raise UnknownWordError(repr(value)) from None


def payload_fields(payload: Payload) -> Any:
    """How a payload stands in a line: the text itself, or where it is."""
    match payload:
        case Inline(text=text):
            return text
        case Stored(name=name, sha256=sha256, size_bytes=size):
            return {"ref": name, "sha256": sha256, "bytes": size}
        case Secret(name=name, size_bytes=size):
            return {"secretRef": name, "bytes": size}
    assert_never(payload)


def payload_of(fields: Any) -> Payload:
    if isinstance(fields, str):
        return Inline(text=fields)
    if "secretRef" in fields:
        return Secret(name=_name_of(fields["secretRef"]), size_bytes=fields["bytes"])
    return Stored(name=_name_of(fields["ref"]), sha256=fields["sha256"], size_bytes=fields["bytes"])


def _name_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no object's name")
    return value


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
        ("question", plan.question, False),
    )
    return fields | {name: value for name, value, default in optional if value != default}


def _plan_of(fields: Fields) -> CallPlan:
    return CallPlan(
        call=fields["call"],
        part=fields["part"],
        tool=fields["tool"],
        effect=_word(Effect, fields.get("effect", _PLAN_DEFAULTS.effect.value)),
        declared=not fields.get("hinted", False),
        approval=fields.get("approval", False),
        timeout_seconds=fields.get("timeout", _PLAN_DEFAULTS.timeout_seconds),
        on_in_doubt=_word(OnInDoubt, fields.get("onInDoubt", _PLAN_DEFAULTS.on_in_doubt.value)),
        sensitive=fields.get("sensitive", False),
        digest=fields.get("digest", ""),
        schema=fields.get("schema", ""),
        refused=fields.get("refused"),
        timer_seconds=fields.get("timer"),
        question=fields.get("question", False),
    )


def _usage_fields(usage: Usage) -> list[int]:
    return [usage.requests, usage.input_tokens, usage.output_tokens]


def _usage_of(fields: list[int]) -> Usage:
    return Usage(requests=fields[0], input_tokens=fields[1], output_tokens=fields[2])


def _optional_text(at: float | None) -> str | None:
    return None if at is None else to_text(at)


def _optional_instant(text: str | None) -> float | None:
    return None if text is None else from_text(text)


KINDS: tuple[Kind[Any], ...] = (
    Kind[Claimed](
        name="claimed",
        entry=Claimed,
        write=lambda e: {
            "epoch": e.epoch,
            "worker": e.worker,
            "incarnation": e.incarnation,
            "revision": e.revision,
            "proof": e.proof and e.proof.value,
        },
        read=lambda at, f: Claimed(
            at=at,
            epoch=f["epoch"],
            worker=f["worker"],
            incarnation=f["incarnation"],
            revision=f["revision"],
            proof=_word(Proof, f["proof"]) if "proof" in f else None,
        ),
    ),
    Kind[ModelAnswered](
        name="model",
        entry=ModelAnswered,
        write=lambda e: {
            "started": to_text(e.started),
            "usage": _usage_fields(e.usage),
            "calls": [_plan_fields(plan) for plan in e.calls] or None,
            "payload": payload_fields(e.payload),
        },
        read=lambda at, f: ModelAnswered(
            at=at,
            started=from_text(f["started"]),
            payload=payload_of(f["payload"]),
            calls=tuple(_plan_of(plan) for plan in f.get("calls", ())),
            usage=_usage_of(f["usage"]),
        ),
        needs=lambda e: QUESTIONS_SINCE if any(plan.question for plan in e.calls) else 1,
    ),
    Kind[ModelFailed](
        name="model-failed",
        entry=ModelFailed,
        write=lambda e: {"reason": e.reason, "message": e.message, "retryAt": _optional_text(e.retry_at)},
        read=lambda at, f: ModelFailed(
            at=at, reason=f["reason"], message=f["message"], retry_at=_optional_instant(f.get("retryAt"))
        ),
    ),
    Kind[Intent](
        name="intent",
        entry=Intent,
        write=lambda e: {"call": e.call, "key": e.key, "ask": e.ask},
        read=lambda at, f: Intent(at=at, call=f["call"], key=f["key"], ask=f.get("ask")),
    ),
    Kind[Result](
        name="result",
        entry=Result,
        write=lambda e: {
            "call": e.call,
            "outcome": None if e.outcome is Outcome.OK else e.outcome.value,
            "started": _optional_text(e.started),
            "payload": payload_fields(e.payload),
        },
        read=lambda at, f: Result(
            at=at,
            call=f["call"],
            outcome=_word(Outcome, f.get("outcome", Outcome.OK.value)),
            payload=payload_of(f["payload"]),
            started=_optional_instant(f.get("started")),
        ),
    ),
    Kind[Requested](
        name="requested",
        entry=Requested,
        write=lambda e: {
            "call": e.call,
            "ask": e.ask,
            "kind": e.kind.value,
            "expiresAt": to_text(e.expires_at),
            "schema": e.schema or None,
            "notBefore": _optional_text(e.not_before),
        },
        read=lambda at, f: Requested(
            at=at,
            call=f["call"],
            ask=f["ask"],
            kind=_word(RequestKind, f["kind"]),
            expires_at=from_text(f["expiresAt"]),
            schema=f.get("schema", ""),
            not_before=_optional_instant(f.get("notBefore")),
        ),
        needs=lambda e: QUESTIONS_SINCE if e.kind is RequestKind.QUESTION else 1,
    ),
    Kind[Decided](
        name="decided",
        entry=Decided,
        write=lambda e: {
            "call": e.call,
            "ask": e.ask,
            "verdict": e.verdict.value,
            "by": list(e.by) or None,
            "choice": e.choice and e.choice.value,
            "answer": e.answer,
            "schema": e.schema or None,
            "reason": e.reason,
        },
        read=lambda at, f: Decided(
            at=at,
            call=f["call"],
            ask=f["ask"],
            verdict=_word(Verdict, f["verdict"]),
            by=tuple(f.get("by", ())),
            choice=_word(Choice, f["choice"]) if "choice" in f else None,
            answer=f.get("answer"),
            schema=f.get("schema", ""),
            reason=f["reason"],
        ),
        needs=lambda e: 1 if e.answer is None else QUESTIONS_SINCE,
    ),
    Kind[Slept](
        name="slept",
        entry=Slept,
        write=lambda e: {"call": e.call, "interrupted": e.interrupted or None},
        read=lambda at, f: Slept(at=at, call=f["call"], interrupted=f.get("interrupted", False)),
    ),
    Kind[ToldInDoubt](
        name="told-in-doubt",
        entry=ToldInDoubt,
        write=lambda e: {"call": e.call},
        read=lambda at, f: ToldInDoubt(at=at, call=f["call"]),
    ),
    Kind[SteeringConsumed](
        name="steered",
        entry=SteeringConsumed,
        write=lambda e: {"position": e.position, "by": e.by, "text": e.text},
        read=lambda at, f: SteeringConsumed(at=at, position=f["position"], by=f["by"], text=f["text"]),
    ),
    Kind[Controlled](
        name="control",
        entry=Controlled,
        write=lambda e: {"control": e.control.value},
        read=lambda at, f: Controlled(at=at, control=_word(Control, f["control"])),
    ),
    Kind[Finished](
        name="finished",
        entry=Finished,
        write=lambda e: {"phase": e.phase.value, "reason": e.reason, "message": e.message or None},
        read=lambda at, f: Finished(
            at=at, phase=_word(Phase, f["phase"]), reason=f["reason"], message=f.get("message", "")
        ),
    ),
)
