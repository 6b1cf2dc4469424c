"""A KubeStore that also notes what it wrote to a journal. Owns counting; it changes no request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from kubernetes.aio.client import Configuration

from aura_operator.store.interface import Op
from aura_operator.store.kube import KubeStore, configuration_of
from aura_operator.store.resources import Manifest, Ref
from benchmarks.raw import Shape

ENTRIES = "/status/journal/entries/-"


class RecordingStore(KubeStore):
    """`writes` has, for each object, the lines that each patch of its status brought."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.writes: defaultdict[str, list[list[str]]] = defaultdict(list)

    @classmethod
    async def connect(cls, kubeconfig: str | None = None, context: str | None = None) -> RecordingStore:
        return cls(await configuration_of(kubeconfig, context))

    async def patch(self, ref: Ref, ops: Sequence[Op], *, subresource: str | None = None) -> Manifest:
        if subresource == "status":
            self.writes[ref.name].append([op.value for op in ops if op.path == ENTRIES])
        return await super().patch(ref, ops, subresource=subresource)

    def shape(self, name: str) -> Shape:
        """Of the usual append to that object's journal: the median of lines, the mean of their bytes."""
        writes = sorted(len(lines) for lines in self.writes[name] if lines)
        sizes = [len(line.encode()) for lines in self.writes[name] for line in lines]
        return Shape(lines=writes[len(writes) // 2], line_bytes=sum(sizes) // len(sizes), facts=True)
