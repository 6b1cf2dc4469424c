"""The answer of a task as its status shows it. Owns when it stands there in full and when it is only referred to."""

from __future__ import annotations

from aura_operator.agent.models import reply
from aura_operator.core.entries import Finished
from aura_operator.core.lifecycle import Phase
from aura_operator.store.overflow import payload_object
from aura_operator.store.resources import CHECKPOINTS
from aura_operator.store.task_fields import ResultFields
from aura_operator.worker.task.live import LiveTask
from aura_operator.worker.task.writer import Objects

INLINE_RESULT_BYTES = 32 * 1024


def result_of(live: LiveTask, ending: Finished) -> tuple[ResultFields, Objects]:
    """`status.result` of a task that ends, and the objects that it refers to; ({}, ()) without an answer."""
    if ending.phase is not Phase.SUCCEEDED or live.state.answer is None:
        return {}, ()
    text = reply.text_of(reply.load(live.payloads.text(live.state.answer)).parts)
    if len(text.encode()) <= INLINE_RESULT_BYTES:
        return {"text": text}, ()
    stored, manifest = payload_object(live.task.manifest, text)
    fields: ResultFields = {"ref": stored.name, "sha256": stored.sha256, "bytes": stored.size_bytes}
    return fields, ((CHECKPOINTS, manifest),)
