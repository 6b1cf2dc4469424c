"""What can go wrong with the local cluster and its tools. Owns the class only; whoever raises it names the remedy."""

from __future__ import annotations

from aura_operator.errors import AuraError


class ClusterError(AuraError):
    """The local cluster, or a tool that it needs, can't be had."""

    reason = "LocalCluster"
