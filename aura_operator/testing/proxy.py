"""A proxy in front of the API server that sees single requests. Owns when each is passed on, answered or cut.

It ends TLS itself and passes Bearer tokens on; a client certificate can't pass it. What it does to which request is a
matter of rules (`proxy_rules`) and hooks. It is for tests, and never part of a running operator.
"""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
from aiohttp import web

from aura_operator.testing.proxy_answers import LARGEST_BODY_BYTES, abort, copy_events, cut, given
from aura_operator.testing.proxy_rules import (
    Action,
    Answer,
    CutBefore,
    Delay,
    Exchange,
    HoldAnswer,
    Predicate,
    Rule,
    SeenRequest,
    SwallowAnswer,
)
from aura_operator.testing.proxy_upstream import Upstream, end_to_end

T = TypeVar("T")
BeforeHook = Callable[[SeenRequest], Awaitable[Action | None]]
AfterHook = Callable[[SeenRequest, int], Awaitable[None]]


class FaultProxy:
    """`async with FaultProxy(...) as proxy:` listens on a loopback port and passes on what no rule stops.

    `upstream` is the API server's URL, `upstream_ca` its authority. `certificate` and `key` are what the proxy shows,
    for 127.0.0.1; `ca` is the authority that signed them, for the clients.

    `before` is awaited with each request before anything happens to it; an action that it returns overrides all rules.
    `after` is awaited with each request and the API server's status when the answer has come and is not yet passed on.
    Both may kill the client: what it had sent is still carried out as decided. An error in a hook is raised at the end.
    """

    def __init__(self, *, upstream: str, upstream_ca: Path, certificate: Path, key: Path, ca: Path) -> None:
        self.log: list[Exchange] = []
        self.rules: list[Rule] = []
        self.before: BeforeHook | None = None
        self.after: AfterHook | None = None
        self._upstream = Upstream(upstream, upstream_ca)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate, key)
        self._ca = ca
        self._changed = asyncio.Condition()
        self._exchanges: set[asyncio.Task[Any]] = set()
        self._watches: dict[asyncio.Transport, SeenRequest] = {}
        self._hook_errors: list[Exception] = []
        # Bound as long as the proxy lives, never listening: while the proxy is down nobody else gets its port, not even
        # a client that happens to connect from it.
        self._reserved = _loopback_socket(0)
        self.port: int = self._reserved.getsockname()[1]
        self._site: web.SockSite | None = None

    # Life

    async def __aenter__(self) -> Self:
        await self._upstream.open()
        application = web.Application(client_max_size=LARGEST_BODY_BYTES)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await self.up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.down()
        await self._end_exchanges()
        await self._runner.cleanup()
        await self._end_exchanges()  # of handlers that were still reading their request
        await self._upstream.aclose()
        self._reserved.close()
        if self._hook_errors and error is None:
            raise ExceptionGroup("a hook of the fault proxy failed", self._hook_errors)

    async def _end_exchanges(self) -> None:
        for exchange in self._exchanges:
            exchange.cancel()
        await asyncio.gather(*self._exchanges, return_exceptions=True)

    async def up(self) -> None:
        """Listens (again), on the same port as before."""
        if self._site is None:
            self._site = web.SockSite(self._runner, _loopback_socket(self.port), ssl_context=self._tls)
            await self._site.start()

    async def down(self) -> None:
        """Refuses connections and cuts the open ones; what is already on its way to the API server is carried out."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        server = self._runner.server
        for connection in server.connections if server else []:
            if connection.transport is not None:
                abort(connection.transport)

    # What tests say and ask

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig(self, token: str, path: Path) -> Path:
        """Writes a kubeconfig that points here, for the holder of a Bearer token. Returns `path`."""
        ca = base64.b64encode(self._ca.read_bytes()).decode()
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.server, "certificate-authority-data": ca}}],
            "users": [{"name": "proxy", "user": {"token": token}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "current-context": "proxy",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(document, indent=2) + "\n")
        return path

    def add(self, action: Action, matches: Predicate, *, nth: int | None = None) -> Rule:
        """Adds a rule, which comes after those that are there, and returns it; `proxy.rules.remove` takes it back."""
        rule = Rule(matches=matches, action=action, nth=nth)
        self.rules.append(rule)
        return rule

    def seen(self, matches: Predicate) -> list[Exchange]:
        return [exchange for exchange in self.log if matches(exchange.request)]

    async def wait_seen(self, matches: Predicate, *, count: int = 1) -> list[Exchange]:
        """Waits until that many matching requests were answered by the API server, or ended without it.

        Bound it with asyncio.timeout.
        """

        def over() -> list[Exchange]:
            return [exchange for exchange in self.seen(matches) if exchange.done or exchange.status is not None]

        async with self._changed:
            await self._changed.wait_for(lambda: len(over()) >= count)
        return over()

    async def wait_watching(self, matches: Predicate) -> None:
        """Waits until a matching watch is open, i.e. the API server has answered it."""
        async with self._changed:
            await self._changed.wait_for(lambda: any(matches(request) for request in self._watches.values()))

    def cut_watches(self, matches: Predicate) -> int:
        """Cuts the matching watches that are open now, and says how many there were."""
        cut = [transport for transport, request in self._watches.items() if matches(request)]
        for transport in cut:
            abort(transport)
        return len(cut)

    # One request

    async def _serve(self, incoming: web.Request) -> web.StreamResponse:
        request = SeenRequest(
            number=len(self.log) + 1,
            method=incoming.method,
            path=incoming.path,
            query=dict(incoming.query),
            content_type=incoming.content_type if incoming.body_exists else "",
            body=await incoming.read(),
        )
        exchange = Exchange(request=request)
        self.log.append(exchange)
        # A task of its own: aiohttp cancels this handler when the client goes, but what it had sent is on its way.
        task = asyncio.create_task(self._pass_on(incoming, exchange))
        self._exchanges.add(task)
        task.add_done_callback(self._exchanges.discard)
        try:
            answer = await asyncio.shield(task)
            return await self._deliver(incoming, exchange, answer)
        finally:
            # At once, or when the answer comes that nobody waits for any more: an open watch would stay open.
            task.add_done_callback(_close_answer)
            exchange.done = task.done()
            await self._announce()

    async def _pass_on(self, incoming: web.Request, exchange: Exchange) -> aiohttp.ClientResponse | None:
        """Asks the API server, unless the action says otherwise; returns its answer with the body still to be read."""
        exchange.action = await self._choose(exchange.request)
        match exchange.action:
            case CutBefore() | Answer():
                exchange.done = True
                return None
            case Delay(seconds=seconds):
                await asyncio.sleep(seconds)
            case _:
                pass
        answer = await self._upstream.answer(incoming, exchange.request)
        if answer is None:
            # The API server itself is gone: the client meets a cut connection, as it would without a proxy.
            exchange.done = True
            return None
        exchange.status = answer.status
        if self.after is not None:
            await self._hooked(self.after(exchange.request, answer.status))
        await self._announce()
        return answer

    async def _choose(self, request: SeenRequest) -> Action | None:
        chosen = await self._hooked(self.before(request)) if self.before is not None else None
        # All rules count, also where an earlier one acts.
        actions = [rule.action_for(request) for rule in list(self.rules)]
        return chosen or next((action for action in actions if action is not None), None)

    async def _deliver(
        self, incoming: web.Request, exchange: Exchange, answer: aiohttp.ClientResponse | None
    ) -> web.StreamResponse:
        match exchange.action:
            case Answer() as own:
                exchange.delivered = True
                return given(own)
            case SwallowAnswer():
                return cut(incoming)
            case HoldAnswer(seconds=None):
                await asyncio.Event().wait()  # Until aiohttp cancels this handler: the client has given up.
            case HoldAnswer(seconds=float() | int() as seconds):
                await asyncio.sleep(seconds)
            case _:
                pass
        if answer is None:
            return cut(incoming)
        headers = end_to_end(answer.headers)
        if exchange.request.is_watch and answer.status == 200:
            return await self._stream(incoming, exchange, answer, headers)
        exchange.delivered = True
        response = web.Response(status=answer.status, body=await answer.read())
        response.headers.update(headers)
        return response

    async def _stream(
        self, incoming: web.Request, exchange: Exchange, answer: aiohttp.ClientResponse, headers: list[tuple[str, str]]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status)
        response.headers.update(headers)
        await response.prepare(incoming)
        transport = incoming.transport
        if transport is None:
            return response
        self._watches[transport] = exchange.request
        exchange.delivered = True
        await self._announce()
        try:
            return await copy_events(incoming, exchange.action, answer, response)
        finally:
            del self._watches[transport]

    async def _hooked(self, hook: Awaitable[T]) -> T | None:
        try:
            return await hook
        except Exception as error:  # noqa: BLE001 - whatever a test's hook raises belongs to the test, at the end
            self._hook_errors.append(error)
            return None

    async def _announce(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _loopback_socket(port: int) -> socket.socket:
    made = socket.socket()
    # Two sockets may then be bound to one port, as long as only one listens.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    return made


def _close_answer(task: asyncio.Task[aiohttp.ClientResponse | None]) -> None:
    if not task.cancelled() and task.exception() is None and (answer := task.result()) is not None:
        answer.close()
