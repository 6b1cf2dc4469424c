"""Free ports on the loopback interface. Owns where to look for them."""

from __future__ import annotations

import random
import socket

from hack.cluster.errors import ClusterError

RANGE = range(20000, 29000)
"""Below the ports that systems hand out to outgoing connections (32768 and up on Linux, 49152 on macOS).

Inside that range a client that keeps trying a server that is down connects to itself sooner or later, and the server
finds its port taken when it comes back.
"""


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listened on just now."""
    found: list[int] = []
    for port in random.sample(RANGE, k=min(len(RANGE), 50 * count)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise ClusterError(f"no {count} free ports between {RANGE.start} and {RANGE.stop} on 127.0.0.1; see `ss -ltn`.")
