"""The texts of one task's payloads, in memory while it runs. Owns where a payload goes and where it comes from."""

from __future__ import annotations

import asyncio
import uuid

from aura_operator.clock import Clock
from aura_operator.core.journal import PAYLOAD_LIMIT_BYTES
from aura_operator.core.transcript import Inline, Item, ModelReply, Payload, Secret, Stored, ToolReturn
from aura_operator.store.interface import Store
from aura_operator.store.overflow import payload_object, read_secret, read_stored, secret_object
from aura_operator.store.resources import CHECKPOINTS, SECRETS, Manifest
from aura_operator.worker.task.writer import Objects

READS_AT_ONCE = 16


class Payloads:
    """Texts by the name of the object that holds them."""

    def __init__(self, task: Manifest) -> None:
        self._task = task
        self._texts: dict[str, str] = {}

    def keep(self, text: str, *, sensitive: bool) -> tuple[Payload, Objects]:
        """How a text goes into the journal, and the objects that must exist before the line is written."""
        if sensitive:
            secret, manifest = secret_object(self._task, text, uuid.uuid4().hex)
            self._texts[secret.name] = text
            return secret, ((SECRETS, manifest),)
        if len(text.encode()) <= PAYLOAD_LIMIT_BYTES:
            return Inline(text=text), ()
        stored, manifest = payload_object(self._task, text)
        self._texts[stored.name] = text
        return stored, ((CHECKPOINTS, manifest),)

    def text(self, payload: Payload) -> str:
        """The text of a payload that was kept or loaded before."""
        match payload:
            case Inline(text=text):
                return text
            case Stored(name=name) | Secret(name=name):
                return self._texts[name]

    async def load(self, store: Store, items: tuple[Item, ...], clock: Clock) -> None:
        """Reads all payloads of a transcript that aren't here yet. Raises DamagedJournalError if one is gone."""
        missing = [item.payload for item in items if isinstance(item, ModelReply | ToolReturn)]
        some_at_once = asyncio.Semaphore(READS_AT_ONCE)

        async def read(payload: Payload) -> None:
            namespace = self._task["metadata"]["namespace"]
            match payload:
                case Stored(name=name) as stored if name not in self._texts:
                    async with some_at_once:
                        self._texts[name] = await read_stored(store, namespace, stored, clock)
                case Secret(name=name) as secret if name not in self._texts:
                    async with some_at_once:
                        self._texts[name] = await read_secret(store, namespace, secret, clock)
                case _:
                    pass

        await asyncio.gather(*(read(payload) for payload in missing if not isinstance(payload, Inline)))
