"""`python -m benchmarks [GROUP…]`: groups are steps and latency; both by default. Falling short is no error."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks import figures, latency, place, steps
from hack.cluster import Cluster

Group = Callable[[Cluster, str], Coroutine[Any, Any, list[figures.Figure]]]

GROUPS: dict[str, Group] = {"steps": steps.measure, "latency": latency.measure}


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - GROUPS.keys())
    if unknown:
        print(f"no such group: {', '.join(unknown)}; there are: {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    # `kill` and `timeout` end a run as Ctrl-C does: with its clean-up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with place.cluster() as cluster:
        version = place.kubernetes_version(cluster)
        for name in names or list(GROUPS):
            measured = asyncio.run(GROUPS[name](cluster, place.namespace(cluster)))
            figures.write(name, measured, kubernetes=version)
            for figure in measured:
                print(figure.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
