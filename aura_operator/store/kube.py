"""The Store on a real API server.

The official client loads the configuration and keeps the credentials fresh; requests go over a session of our own,
raw, since that takes less than half of its client's time per request (docs/adr/0003). Must not know any kind.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from yaml import YAMLError

from aura_operator.errors import (
    ConfigurationError,
    ContentRejectedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionFailedError,
)
from aura_operator.store.answers import error_of
from aura_operator.store.interface import Op, Page, Selection, WatchEvent, WatchKind
from aura_operator.store.resources import Manifest, Ref, Resource

FIELD_MANAGER = "aura"  # one fixed name, or managedFields grows with each writer
REQUEST_SECONDS = 5.0
WATCH_IDLE_SECONDS = 90.0  # bookmarks come about every 60 s; a stream that is silent for longer is dead
MAX_BODY_BYTES = 1_000_000  # the server takes 1.5 MB (etcd's bound) and answers 500 beyond; checked before sending
JSON_PATCH = "application/json-patch+json"


async def configuration_of(kubeconfig: str | None, context: str | None = None) -> Configuration:
    """The connection that the user's kubeconfig (or the pod's service account) describes.

    Raises ConfigurationError if there is none, or it can't be understood.
    """
    configuration = Configuration()
    where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            _demand_one_file(where)
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=kubeconfig, context=context, client_configuration=configuration
            )
    except (ConfigException, OSError) as error:
        raise ConfigurationError(f"no cluster to talk to: {where}: {error}; set KUBECONFIG or --kubeconfig") from error
    except (YAMLError, ValueError) as error:
        said = " ".join(str(error).split())
        raise ConfigurationError(f"{where} is no kubeconfig: {said}; set KUBECONFIG or --kubeconfig") from error
    except (TypeError, AttributeError, KeyError) as error:  # what the loader makes of any other document
        raise ConfigurationError(
            f"{where} is no kubeconfig: it isn't what `kubectl config view` shows; set KUBECONFIG or --kubeconfig"
        ) from error
    return configuration


def _demand_one_file(where: str) -> None:
    """The loader takes a list of files as kubectl does, and says of missing ones that they lack a context."""
    if not any(Path(name).expanduser().exists() for name in where.split(os.pathsep)):
        raise ConfigurationError(f"no kubeconfig: {where} isn't there; set KUBECONFIG or --kubeconfig")


class KubeStore:
    """Requests to one API server with the credentials of one configuration."""

    def __init__(self, configuration: Configuration, *, request_seconds: float = REQUEST_SECONDS) -> None:
        self._configuration = configuration
        self._timeout = aiohttp.ClientTimeout(total=request_seconds)
        self._watch_timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=request_seconds, sock_read=WATCH_IDLE_SECONDS
        )
        connector = aiohttp.TCPConnector(ssl=RESTClientObject(configuration).ssl_context, limit=0)
        self._session = aiohttp.ClientSession(
            base_url=configuration.host.rstrip("/") + "/",
            connector=connector,
            # A watch's line is a whole object, far beyond aiohttp's default of 64 KiB.
            read_bufsize=2**20,
        )

    @classmethod
    async def connect(cls, kubeconfig: str | None = None, context: str | None = None) -> KubeStore:
        return cls(await configuration_of(kubeconfig, context))

    @property
    def configuration(self) -> Configuration:
        return self._configuration

    async def aclose(self) -> None:
        await self._session.close()

    async def get(self, ref: Ref) -> Manifest:
        return await self._request("GET", _path(ref.resource, ref.namespace, ref.name), what=f"reading {ref}")

    async def create(self, resource: Resource, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        metadata = manifest["metadata"]
        name = metadata.get("name", metadata.get("generateName"))
        params = _WRITE_PARAMS | ({"dryRun": "All"} if dry_run else {})
        return await self._request(
            "POST",
            _path(resource, metadata["namespace"]),
            what=f"creating {resource.kind} {metadata['namespace']}/{name}",
            body=orjson.dumps(manifest),
            params=params,
        )

    async def patch(self, ref: Ref, ops: Sequence[Op], *, subresource: str | None = None) -> Manifest:
        path = _path(ref.resource, ref.namespace, ref.name)
        return await self._request(
            "PATCH",
            f"{path}/{subresource}" if subresource else path,
            what=f"writing {ref}",
            body=orjson.dumps([op.to_json() for op in ops]),
            params=_WRITE_PARAMS,
            content_type=JSON_PATCH,
        )

    async def delete(self, ref: Ref, *, uid: str) -> None:
        body = orjson.dumps({"preconditions": {"uid": uid}, "propagationPolicy": "Background"})
        path = _path(ref.resource, ref.namespace, ref.name)
        try:
            await self._request("DELETE", path, what=f"deleting {ref}", body=body)
        except PreconditionFailedError as error:  # 409: the precondition says that this is another object
            raise NotFoundError(f"{ref} with uid {uid} is gone: {error}") from error

    async def list(self, selection: Selection, *, limit: int = 500, continue_token: str | None = None) -> Page:
        params = (
            _selectors(selection) | {"limit": str(limit)} | ({"continue": continue_token} if continue_token else {})
        )
        path = _path(selection.resource, selection.namespace)
        answer = await self._request("GET", path, what=f"listing {selection.resource.plural}", params=params)
        items = answer["items"]
        for item in items:  # a list leaves out what all its items share
            item.setdefault("apiVersion", selection.resource.api_version)
            item.setdefault("kind", selection.resource.kind)
        metadata = answer["metadata"]
        return Page(
            items=items, resource_version=metadata["resourceVersion"], continue_token=metadata.get("continue") or None
        )

    async def watch(self, selection: Selection, resource_version: str) -> AsyncIterator[WatchEvent]:
        what = f"watching {selection.resource.plural}"
        params = _selectors(selection) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
        }
        path = _path(selection.resource, selection.namespace)
        headers = await self._headers()
        try:
            async with self._session.get(path, params=params, headers=headers, timeout=self._watch_timeout) as answer:
                if answer.status != 200:
                    raise error_of(answer.status, answer.headers, await answer.read(), what)
                async for line in answer.content:
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise error_of(status.get("code", 500), {}, orjson.dumps(status), what)
                    yield WatchEvent(kind=WatchKind(event["type"]), object=event["object"])
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise OutcomeUnknownError(f"{what}: the stream broke: {error!r}") from error

    async def fields(self, resource: Resource, part: str) -> set[str]:
        path = f"/openapi/v3{resource.prefix}"
        document = await self._request("GET", path, what=f"reading the schema of {resource.plural}")
        for schema in document["components"]["schemas"].values():
            kinds = schema.get("x-kubernetes-group-version-kind", ())
            if any(kind["kind"] == resource.kind for kind in kinds):
                return set(schema["properties"].get(part, {}).get("properties", ()))
        return set()

    async def _request(
        self,
        method: str,
        path: str,
        *,
        what: str,
        body: bytes | None = None,
        params: dict[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        if body is not None and len(body) > MAX_BODY_BYTES:
            raise ContentRejectedError(f"{what}: {len(body)} bytes are too large (at most {MAX_BODY_BYTES})")
        headers = await self._headers()
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with self._session.request(
                method, path, data=body, params=params, headers=headers, timeout=self._timeout
            ) as answer:
                data = await answer.read()
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise OutcomeUnknownError(f"{what}: no answer ({error!r}); it may or may not have been done") from error
        if answer.status >= 400:
            raise error_of(answer.status, answer.headers, data, what)
        try:
            parsed: Any = orjson.loads(data)
        except ValueError as error:  # not the API server's: a proxy's page, say
            raise OutcomeUnknownError(f"{what}: the answer is no JSON: {data[:100]!r}") from error
        return parsed if isinstance(parsed, dict) else {}

    async def _headers(self) -> dict[str, str]:
        token = await self._configuration.get_api_key_with_prefix("BearerToken")
        return {"Authorization": token} if token else {}


_WRITE_PARAMS = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}


def _path(resource: Resource, namespace: str | None, name: str | None = None) -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{resource.prefix}{scope}/{resource.plural}" + (f"/{name}" if name else "")


def _selectors(selection: Selection) -> dict[str, str]:
    chosen = {"fieldSelector": selection.fields, "labelSelector": selection.labels}
    return {name: value for name, value in chosen.items() if value}
