"""The kopf operator, embedded, as a source of events. Owns kopf's settings.

kopf only watches here: it writes nothing, adds no finalizers or annotations, and lives as a coroutine of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import kopf
from kubernetes.aio.client import Configuration

from aura_operator.controller.events import Tell
from aura_operator.store.follow import Change, Seen
from aura_operator.store.resources import Resource


class KopfEvents:
    """An EventSource over kopf. `namespaces` empty: all of them.

    `on_start` is called after each start of kopf, which takes SIGTERM and SIGINT for itself then. SYNCED says here
    that kopf has begun; it may still be listing.
    """

    def __init__(
        self, configuration: Configuration, namespaces: Sequence[str], *, on_start: Callable[[], None]
    ) -> None:
        self._configuration = configuration
        self._namespaces = tuple(namespaces)
        self._on_start = on_start

    async def run(self, resources: Sequence[Resource], tell: Tell) -> None:
        stop, ready = asyncio.Event(), asyncio.Event()

        async def begun() -> None:
            await ready.wait()
            self._on_start()
            for resource in resources:
                tell(resource, Seen(change=Change.SYNCED))

        try:
            async with asyncio.TaskGroup() as group:
                beginning = group.create_task(begun())
                await kopf.operator(
                    registry=self._registry(resources, tell),
                    settings=_settings(),
                    clusterwide=not self._namespaces,
                    namespaces=self._namespaces,
                    stop_flag=stop,
                    ready_flag=ready,
                )
                beginning.cancel()
        finally:
            stop.set()

    def _registry(self, resources: Sequence[Resource], tell: Tell) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        configuration = self._configuration

        async def login(**_: Any) -> kopf.ConnectionInfo:
            header = await configuration.get_api_key_with_prefix("BearerToken")
            return kopf.ConnectionInfo(
                server=configuration.host,
                ca_path=configuration.ssl_ca_cert,
                certificate_path=configuration.cert_file,
                private_key_path=configuration.key_file,
                token=header.split(None, 1)[1] if header else None,
            )

        kopf.on.login(registry=registry)(login)
        for resource in resources:
            _on_event(registry, resource, tell)
        return registry


class _EndlessBackoff:
    """kopf ends the operator when its delays run out; these don't."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.5, 1.0)
        while True:
            yield 2.0


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.networking.error_backoffs = _EndlessBackoff()
    settings.networking.request_timeout = 10.0
    settings.queueing.idle_timeout = 0.1  # a task of ours per object, but not for long: 10,000 objects cost 88 MiB
    settings.queueing.exit_timeout = 1.0
    return settings


def _on_event(registry: kopf.OperatorRegistry, resource: Resource, tell: Tell) -> None:
    async def seen(event: Any, **_: Any) -> None:
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **event["object"]}
        change = Change.GONE if event["type"] == "DELETED" else Change.SET
        tell(resource, Seen(change=change, object=manifest))

    kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)(seen)
