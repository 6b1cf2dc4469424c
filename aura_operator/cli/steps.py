"""Journal entries as lines for people: number, time, what happened, who decided. Pure; shows no payloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from aura_operator.core.entries import (
    Claimed,
    Controlled,
    Decided,
    Entry,
    Finished,
    Intent,
    ModelAnswered,
    ModelFailed,
    Requested,
    Result,
    Slept,
    SteeringConsumed,
    ToldInDoubt,
)
from aura_operator.core.instants import to_text
from aura_operator.core.plan import CallPlan


def steps(entries: Sequence[Entry]) -> list[str]:
    """One line for each entry, numbered by its position in the journal."""
    plans = {plan.call: plan for entry in entries if isinstance(entry, ModelAnswered) for plan in entry.calls}
    return [f"{position:4d}  {to_text(entry.at)}  {_told(entry, plans)}" for position, entry in enumerate(entries)]


def _told(entry: Entry, plans: dict[int, CallPlan]) -> str:
    match entry:
        case Claimed():
            proof = f" (last owner: {entry.proof.value})" if entry.proof else ""
            return f"claimed    epoch {entry.epoch} by {entry.worker}, {entry.revision}{proof}"
        case ModelAnswered():
            tokens = f"{entry.usage.input_tokens}+{entry.usage.output_tokens} tokens"
            asks = ", ".join(f"{plan.tool} (call {plan.call}, {plan.effect.value})" for plan in entry.calls)
            return f"model      {entry.at - entry.started:.3f} s, {tokens}; " + (f"wants {asks}" if asks else "answers")
        case ModelFailed():
            return f"model      failed: {entry.reason}: {entry.message}"
        case Intent():
            return f"intent     call {entry.call} {_tool(entry.call, plans)}"
        case Result():
            size = getattr(entry.payload, "size_bytes", None)
            where = f", {size} bytes kept apart" if size is not None else ""
            return f"result     call {entry.call} {_tool(entry.call, plans)}: {entry.outcome.value}{where}"
        case Requested():
            until = to_text(entry.expires_at)
            return f"requested  call {entry.call} {_tool(entry.call, plans)}: {entry.kind.value}, until {until}"
        case Decided():
            by = ", ".join(entry.by) or "nobody"
            if entry.answer is not None:
                return f"answered   call {entry.call} by {by}: {entry.answer!r}"
            choice = f" {entry.choice.value}" if entry.choice else ""
            reason = f": {entry.reason}" if entry.reason else ""
            return f"decided    call {entry.call} {entry.verdict.value}{choice} by {by}{reason}"
        case Slept():
            return f"slept      call {entry.call}" + (", woken early" if entry.interrupted else "")
        case ToldInDoubt():
            return f"in doubt   call {entry.call} {_tool(entry.call, plans)}: the model is told"
        case SteeringConsumed():
            return f"steered    by {entry.by}: {entry.text!r}"
        case Controlled():
            return f"control    {entry.control.value}"
        case Finished():
            message = f": {entry.message}" if entry.message else ""
            return f"finished   {entry.phase.value}, {entry.reason}{message}"
    assert_never(entry)


def _tool(call: int, plans: dict[int, CallPlan]) -> str:
    return plans[call].tool if call in plans else "?"
