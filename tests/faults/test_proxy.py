"""Every fault of the proxy, against the real API server: what the client meets, and what happened behind it."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aura_operator.testing.proxy import FaultProxy
from aura_operator.testing.proxy_rules import (
    Action,
    Answer,
    CutBefore,
    CutWatch,
    Delay,
    ExpireWatch,
    HoldAnswer,
    SeenRequest,
    SwallowAnswer,
    matching,
)
from aura_operator.testing.proxy_thread import ProxyThread
from hack.cluster import Cluster
from hack.kubectl import Kubectl

POSTS = matching(method="POST", path="/configmaps$")
WATCHES = matching(method="GET", path="/configmaps$")


@pytest.fixture
def token(cluster: Cluster, kubectl: Kubectl, namespace: str) -> str:
    """A ServiceAccount's token that may do anything in the test's namespace."""
    kubectl("create", "rolebinding", "all", "--clusterrole=admin", f"--serviceaccount={namespace}:default")
    document = json.loads(cluster.service_account_kubeconfig(namespace, "default").read_text())
    return str(document["users"][0]["user"]["token"])


@pytest.fixture
async def proxy(proxy_arguments: dict[str, Any]) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(**proxy_arguments) as running:
        yield running


class Client:
    """ConfigMaps of one namespace, through the proxy: one request per call, nothing is tried twice."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def create(self, name: str, *, timeout_seconds: float = 10) -> int:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        async with self.session.post(self.url, json=body, timeout=timeout) as answer:
            await answer.read()
            return answer.status

    def watch(self) -> Any:
        return self.session.get(self.url, params={"watch": "true"})


@pytest.fixture
async def client(
    proxy: FaultProxy, proxy_arguments: dict[str, Any], token: str, namespace: str
) -> AsyncIterator[Client]:
    tls = ssl.create_default_context(cafile=str(proxy_arguments["ca"]))
    # A new connection per request: aiohttp sends a GET again if a reused connection turns out to be closed.
    connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {token}"}) as session:
        yield Client(session, f"{proxy.server}/api/v1/namespaces/{namespace}/configmaps")


@pytest.fixture
def exists(kubectl: Kubectl) -> Callable[[str], bool]:
    """Asks the API server itself, past the proxy."""
    return lambda name: name in kubectl("get", "configmaps", "--output", "name")


async def test_a_request_passes_with_the_callers_token_and_is_logged(
    proxy: FaultProxy, client: Client, exists: Callable[[str], bool]
) -> None:
    assert await client.create("plain") == 201
    assert exists("plain")
    (exchange,) = proxy.seen(POSTS)
    assert (exchange.request.content_type, exchange.status, exchange.delivered) == ("application/json", 201, True)
    assert exchange.request.json["metadata"] == {"name": "plain"}


async def test_cut_before_sending_means_never_applied(
    proxy: FaultProxy, client: Client, exists: Callable[[str], bool]
) -> None:
    proxy.add(CutBefore(), POSTS, nth=2)
    assert await client.create("first") == 201
    with pytest.raises(aiohttp.ClientError):
        await client.create("second")
    assert await client.create("third") == 201
    assert (exists("first"), exists("second"), exists("third")) == (True, False, True)


async def test_a_swallowed_answer_means_applied_but_cut(
    proxy: FaultProxy, client: Client, exists: Callable[[str], bool]
) -> None:
    proxy.add(SwallowAnswer(), POSTS)
    with pytest.raises(aiohttp.ClientError):
        await client.create("swallowed")
    assert exists("swallowed")
    assert [exchange.status for exchange in proxy.seen(POSTS)] == [201]


async def test_a_held_answer_means_applied_and_the_client_times_out(
    proxy: FaultProxy, client: Client, exists: Callable[[str], bool]
) -> None:
    proxy.add(HoldAnswer(), POSTS, nth=1)
    with pytest.raises(TimeoutError):
        await client.create("held", timeout_seconds=0.5)
    assert exists("held")
    proxy.add(HoldAnswer(seconds=0.3), POSTS, nth=1)
    assert await client.create("late", timeout_seconds=5) == 201


async def test_a_delayed_request_lands_even_after_its_client_gave_up(
    proxy: FaultProxy, client: Client, exists: Callable[[str], bool]
) -> None:
    proxy.add(Delay(seconds=1), POSTS)
    with pytest.raises(TimeoutError):
        await client.create("landing", timeout_seconds=0.2)
    assert not exists("landing")
    async with asyncio.timeout(10):
        (exchange,) = await proxy.wait_seen(POSTS)
    assert (exchange.status, exchange.delivered) == (201, False)
    assert exists("landing")


@pytest.mark.parametrize(("status", "reason"), [(429, "TooManyRequests"), (410, "Expired"), (500, "InternalError")])
async def test_an_answer_can_be_given_in_place_of_the_servers(
    proxy: FaultProxy, client: Client, exists: Callable[[str], bool], status: int, reason: str
) -> None:
    proxy.add(Answer(status=status, retry_after_seconds=7), POSTS)
    async with client.session.post(client.url, json={"metadata": {"name": "refused"}}) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (status, "7")
        assert (await answer.json())["reason"] == reason
    assert not exists("refused")


async def test_a_watch_passes_each_event_as_it_happens(proxy: FaultProxy, client: Client) -> None:
    async with asyncio.timeout(10), client.watch() as watch:
        assert (await watch.content.readline()).startswith(b'{"type":"ADDED"')  # kube-root-ca.crt
        await client.create("seen-live")
        assert b"seen-live" in await watch.content.readline()
        await proxy.wait_watching(WATCHES)
        assert proxy.cut_watches(WATCHES) == 1
        with pytest.raises(aiohttp.ClientError):
            await watch.content.readline()


async def test_a_watch_is_cut_after_so_many_events(proxy: FaultProxy, client: Client) -> None:
    proxy.add(CutWatch(after_events=1), WATCHES)
    async with asyncio.timeout(10), client.watch() as watch:
        assert b"ADDED" in await watch.content.readline()
        with pytest.raises(aiohttp.ClientError):
            await watch.content.readline()


async def test_a_watch_ends_with_an_event_that_says_410(proxy: FaultProxy, client: Client) -> None:
    proxy.add(ExpireWatch(), WATCHES)
    async with asyncio.timeout(10), client.watch() as watch:
        event = json.loads(await watch.content.readline())
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
        assert await watch.content.readline() == b""


async def test_down_refuses_and_cuts_and_up_serves_again_on_the_same_port(proxy: FaultProxy, client: Client) -> None:
    port = proxy.port
    async with asyncio.timeout(10), client.watch() as watch:
        await watch.content.readline()
        await proxy.down()
        with pytest.raises(aiohttp.ClientError):
            await watch.content.readline()
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.create("while-down")
    await proxy.up()
    assert proxy.port == port
    assert await client.create("after") == 201


# A process that creates one ConfigMap through the proxy and would then say so.
CREATOR = """
import json, ssl, sys, urllib.request
url, token, ca, name = sys.argv[1:]
body = json.dumps({"metadata": {"name": name}}).encode()
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(url, body, headers), context=ssl.create_default_context(cafile=ca)).read()
print("answered")
"""


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_hook_kills_a_process_exactly_before_or_after_its_request(
    proxy: FaultProxy,
    client: Client,
    proxy_arguments: dict[str, Any],
    token: str,
    exists: Callable[[str], bool],
    moment: str,
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CREATOR, client.url, token, str(proxy_arguments["ca"]), "killed"),
        stdout=subprocess.PIPE,
    )

    async def before(request: SeenRequest) -> Action | None:
        if moment == "after" or not POSTS(request):
            return None
        process.kill()
        return CutBefore()

    async def after(request: SeenRequest, status: int) -> None:
        if moment == "after" and POSTS(request):
            process.kill()

    proxy.before, proxy.after = before, after
    async with asyncio.timeout(20):
        output, _ = await process.communicate()
        await proxy.wait_seen(POSTS)
    assert (process.returncode, output) == (-signal.SIGKILL, b"")
    assert exists("killed") is (moment == "after")


async def test_an_error_in_a_hook_is_raised_at_the_end(proxy_arguments: dict[str, Any]) -> None:
    async def wrong(request: SeenRequest) -> Action | None:
        raise AssertionError(f"did not expect {request.method}")

    async def use() -> None:
        async with FaultProxy(**proxy_arguments) as proxy:
            proxy.before = wrong
            tls = ssl.create_default_context(cafile=str(proxy_arguments["ca"]))
            async with aiohttp.ClientSession() as session, session.get(f"{proxy.server}/version", ssl=tls) as answer:
                assert answer.status == 200

    with pytest.raises(ExceptionGroup) as caught:
        await use()
    assert "did not expect GET" in str(caught.value.exceptions[0])


def test_in_a_thread_it_serves_programs_that_block_the_test(
    proxy_arguments: dict[str, Any], token: str, tmp_path: Path, namespace: str
) -> None:
    with ProxyThread(**proxy_arguments) as thread:
        user = Kubectl(thread.proxy.kubeconfig(token, tmp_path / "kubeconfig"))
        assert user.json("auth", "whoami")["status"]["userInfo"]["username"].endswith(f":{namespace}:default")
        thread.run(thread.proxy.down())
        assert "refused" in user.run("get", "configmaps", "--namespace", namespace).stderr
        thread.run(thread.proxy.up())
        assert "kube-root-ca.crt" in user("get", "configmaps", "--namespace", namespace)
