"""What a worker asks before it takes tasks: do the admission policies act, and does the server know our fields?

Without the policies decisions could be forged; with older CRDs a write would be refused in the middle of a task.
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from aura_operator.api.approval import ApprovalSpec
from aura_operator.api.checkpoint import CheckpointSpec
from aura_operator.api.probe import REFUSAL, forged_approval
from aura_operator.api.task_status import TaskStatus
from aura_operator.clock import Clock
from aura_operator.errors import ContentRejectedError, StoreError
from aura_operator.store.interface import Store
from aura_operator.store.resources import APPROVALS, CHECKPOINTS, TASKS, Resource

log = structlog.get_logger()

RETRY_SECONDS = 2.0

_WRITTEN = (
    (TASKS, "status", TaskStatus),
    (APPROVALS, "spec", ApprovalSpec),
    (CHECKPOINTS, "spec", CheckpointSpec),
)


async def passed(store: Store, clock: Clock, namespace: str, tell: Callable[[str], None]) -> None:
    """Returns once both answers are right; until then tells and logs every two seconds what is wrong."""
    while True:
        wrong = await _wrong(store, namespace)
        if wrong is None:
            return
        tell(wrong)
        log.warning("not ready to take tasks", why=wrong)
        await clock.sleep(RETRY_SECONDS)


async def _wrong(store: Store, namespace: str) -> str | None:
    try:
        return await _policies(store, namespace) or await _fields(store)
    except StoreError as error:
        return str(error)


async def _policies(store: Store, namespace: str) -> str | None:
    try:
        await store.create(APPROVALS, forged_approval(namespace), dry_run=True)
    except ContentRejectedError as error:
        if REFUSAL in str(error):
            return None
        return f"the admission policies don't answer as they should: {error}"
    return "the admission policies are missing: a forged approval was not refused; install the chart's admission part"


async def _fields(store: Store) -> str | None:
    for resource, part, model in _WRITTEN:
        served = await store.fields(resource, part)
        needed = {field.alias or name for name, field in model.model_fields.items()}
        missing = sorted(needed - served)
        if missing:
            return f"{_crd(resource)} is older than this worker: no {part}.{', '.join(missing)}; upgrade the CRDs"
    return None


def _crd(resource: Resource) -> str:
    return f"CustomResourceDefinition {resource.plural}.{resource.group}"
