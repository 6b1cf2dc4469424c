"""A real Kubernetes on this machine without Docker and without root, and the tools that go with it.

`Cluster` is the whole interface for tests and the demo; `python -m hack.cluster` is the same for people.
"""

from hack.cluster.cluster import CHECKOUT, Cluster, names
from hack.cluster.errors import ClusterError
from hack.cluster.existing import ExistingCluster

AnyCluster = Cluster | ExistingCluster

__all__ = ["CHECKOUT", "AnyCluster", "Cluster", "ClusterError", "ExistingCluster", "names"]
