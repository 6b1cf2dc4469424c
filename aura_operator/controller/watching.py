"""The kopf operator, embedded: tells objects to reconcilers as events. Owns kopf's settings.

kopf only watches here: it writes nothing, adds no finalizers or annotations, and lives as a coroutine of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import kopf
import structlog
from kubernetes.aio.client import Configuration

from aura_operator.clock import Clock
from aura_operator.store.resources import Manifest, Resource

log = structlog.get_logger()

Handler = Callable[[Manifest, bool], Awaitable[None]]
"""Takes an object and whether it is gone."""

RESTART_SECONDS = 2.0


class _EndlessBackoff:
    """kopf ends the operator when its delays run out; these don't."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.5, 1.0)
        while True:
            yield 2.0


async def watch(
    configuration: Configuration,
    namespaces: tuple[str, ...],
    clock: Clock,
    *,
    handlers: Mapping[Resource, Handler],
    on_start: Callable[[], None],
) -> None:
    """Runs kopf for ever; starts it anew if it ends by itself. `on_start` is called after each start: kopf takes
    SIGTERM and SIGINT for itself then."""
    while True:
        stop = asyncio.Event()
        ready = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(_when(ready, on_start))
                await kopf.operator(
                    registry=_registry(configuration, handlers),
                    settings=_settings(),
                    clusterwide=not namespaces,
                    namespaces=namespaces,
                    stop_flag=stop,
                    ready_flag=ready,
                )
                waiting.cancel()
            log.warning("the watch ended by itself; starting it anew")
        except asyncio.CancelledError:
            stop.set()
            raise
        except Exception as error:  # noqa: BLE001 - whatever ended it, the controller must see events again
            log.error("the watch failed; starting it anew", error=repr(error))
        await clock.sleep(RESTART_SECONDS)


async def _when(ready: asyncio.Event, on_start: Callable[[], None]) -> None:
    await ready.wait()
    on_start()


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


def _registry(configuration: Configuration, handlers: Mapping[Resource, Handler]) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

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
    for resource, handler in handlers.items():
        _on_event(registry, resource, handler)
    return registry


def _on_event(registry: kopf.OperatorRegistry, resource: Resource, handler: Handler) -> None:
    async def seen(event: Any, **_: Any) -> None:
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **event["object"]}
        await handler(manifest, event["type"] == "DELETED")

    kopf.on.event(resource.group, resource.version, resource.plural, registry=registry, id=resource.plural)(seen)
