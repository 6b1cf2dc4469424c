"""`python -m benchmarks [GROUP…]`: groups are steps and latency; both by default."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from benchmarks import figures, latency, place, steps
from hack.cluster import Cluster

Group = Callable[[Cluster, str], Awaitable[list[figures.Figure]]]

GROUPS: dict[str, Group] = {"steps": steps.measure, "latency": latency.measure}


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - GROUPS.keys())
    if unknown:
        print(f"no such group: {', '.join(unknown)}; there are: {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    with place.cluster() as cluster:
        version = place.kubernetes_version(cluster)
        for name in names or list(GROUPS):
            measured = asyncio.run(_measured(GROUPS[name], cluster, place.namespace(cluster)))
            figures.write(name, measured, kubernetes=version)
            for figure in measured:
                print(figure.line(), flush=True)
    return 0


async def _measured(group: Group, cluster: Cluster, namespace: str) -> list[figures.Figure]:
    return await group(cluster, namespace)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
