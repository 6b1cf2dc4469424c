"""The task's journal as the demo reads it: entries, and the figures that follow from their times. Starts nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aura_operator.cli.steps import steps
from aura_operator.clock import SystemClock
from aura_operator.core.entries import Claimed, Decided, Entry, Intent, ModelAnswered, Requested, RequestKind, Result
from aura_operator.store.journal_reads import read_entries
from aura_operator.store.kube import KubeStore
from aura_operator.store.view import task_ref, task_view


def read(kubeconfig: Path, namespace: str, task: str) -> tuple[Entry, ...]:
    """All entries of a task, in order."""
    return asyncio.run(_read(str(kubeconfig), namespace, task))


async def _read(kubeconfig: str, namespace: str, name: str) -> tuple[Entry, ...]:
    store = await KubeStore.connect(kubeconfig)
    try:
        task = task_view(await store.get(task_ref(namespace, name)))
        return tuple(await read_entries(store, task, SystemClock()))
    finally:
        await store.aclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A journal, asked what the demo wants to know."""

    entries: Sequence[Entry]

    def timeline(self) -> list[str]:
        """What `aura timeline` prints."""
        return steps(self.entries)

    @property
    def models(self) -> list[ModelAnswered]:
        return [entry for entry in self.entries if isinstance(entry, ModelAnswered)]

    @property
    def owners(self) -> list[Claimed]:
        return [entry for entry in self.entries if isinstance(entry, Claimed)]

    def thinks_again(self) -> bool:
        """Whether the model is being called for the second time: one answer, and the result of what it wanted."""
        results = sum(isinstance(entry, Result) for entry in self.entries)
        return len(self.models) == 1 and results == 1

    def second_thought_after(self, killed_at: float) -> float | None:
        """Seconds from a kill to the start of the second model call that was answered; None if it began before."""
        started = self.models[1].started
        return started - killed_at if started > killed_at else None

    def asked(self) -> int | None:
        """The call that a person is asked about."""
        calls = [
            entry.call for entry in self.entries if isinstance(entry, Requested) and entry.kind is RequestKind.TOOL_CALL
        ]
        return calls[-1] if calls else None

    def decided(self) -> Decided | None:
        found = [entry for entry in self.entries if isinstance(entry, Decided)]
        return found[-1] if found else None

    def intent_at(self) -> float | None:
        """When the approved call was made."""
        found = [entry.at for entry in self.entries if isinstance(entry, Intent)]
        return found[-1] if found else None
