"""The HTTP client that a provider's SDK is given: one for each model, all with the same trusted authorities.

Owns its limits and its time to connect; what is sent, and for how long an answer may take, is the SDK's business.
"""

from __future__ import annotations

import httpx2

from aura_operator.agent.trust import trust

_CONNECT_SECONDS = 5.0
_LIMITS = httpx2.Limits(max_connections=1000, max_keepalive_connections=100)  # as the SDKs have them


def http_client() -> httpx2.AsyncClient:
    """A client that honours the environment's proxies. A provider's own one would read the authorities anew."""
    return httpx2.AsyncClient(verify=trust(), limits=_LIMITS, event_hooks={"request": [_connect_soon]})


async def _connect_soon(request: httpx2.Request) -> None:
    """The SDKs put the time for the whole answer everywhere: a server that is gone would be noticed after minutes."""
    seconds = request.extensions["timeout"]
    connect = min(seconds["connect"] or _CONNECT_SECONDS, _CONNECT_SECONDS)
    request.extensions = {**request.extensions, "timeout": {**seconds, "connect": connect}}
