"""The agent as a task sees it: pinned at the first claim as a ControllerRevision, the same until the task's end.

Owns pinning and reading back. Secrets are never part of a revision; they are read when the task runs.
"""

from __future__ import annotations

from pydantic import ValidationError

from aura_operator.api.agent import AgentSpec
from aura_operator.clock import Clock
from aura_operator.errors import AlreadyExistsError, ConfigurationError, NotFoundError
from aura_operator.store.commit import get_retrying
from aura_operator.store.interface import Store
from aura_operator.store.resources import AGENTS, REVISIONS, Manifest, Ref, new
from aura_operator.store.revisions import revision_name

AGENT_LABEL = "aura.mezmo.com/agent"

READ_SECONDS = 20.0  # for anything that is read before a task runs: it holds a slot meanwhile
REFUSED_SECONDS = 5.0  # a server that has just started refuses for a moment what it will allow


async def pin(store: Store, namespace: str, agent: str, clock: Clock) -> str:
    """The name of the revision of the agent as it is now; it exists afterwards.

    Raises NotFoundError for no agent, StoreError or RefusedError where that can't be known or done now.
    """
    found = await _read(store, Ref(resource=AGENTS, namespace=namespace, name=agent), clock)
    spec = found["spec"]
    name = revision_name(agent, spec)
    manifest = new(REVISIONS, namespace, name, data={"spec": spec}, revision=found["metadata"].get("generation", 1))
    # No owner: a parked task goes on with its revision after its agent was deleted.
    manifest["metadata"]["labels"] = {AGENT_LABEL: agent}
    try:
        await store.create(REVISIONS, manifest)
    except AlreadyExistsError:
        found = await _read(store, Ref(resource=REVISIONS, namespace=namespace, name=name), clock)
        if found.get("data") != {"spec": spec}:
            raise ConfigurationError(
                f"ControllerRevision {namespace}/{name} holds something else than AuraAgent {agent}; delete it"
            ) from None
    return name


async def read_revision(store: Store, namespace: str, name: str, clock: Clock) -> AgentSpec:
    """The pinned spec.

    Raises ConfigurationError if it is gone or this version can't read it, StoreError or RefusedError if it can't be
    read now.
    """
    try:
        found = await _read(store, Ref(resource=REVISIONS, namespace=namespace, name=name), clock)
        return AgentSpec.model_validate((found.get("data") or {})["spec"])
    except NotFoundError as error:
        raise ConfigurationError(
            f"ControllerRevision {namespace}/{name}, with which this task began, is gone", reason="RevisionNotFound"
        ) from error
    except KeyError as error:
        raise ConfigurationError(
            f"ControllerRevision {namespace}/{name}, with which this task began, holds no agent any more"
        ) from error
    except ValidationError as error:
        raise ConfigurationError(
            f"ControllerRevision {namespace}/{name} can't be read by this version: {error.errors()[0]['msg']}"
        ) from error


async def _read(store: Store, ref: Ref, clock: Clock) -> Manifest:
    return await get_retrying(store, ref, clock, within_seconds=READ_SECONDS, refused_seconds=REFUSED_SECONDS)
