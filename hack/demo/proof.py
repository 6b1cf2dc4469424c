"""That the Deployment was restarted exactly as often as a person allowed. Owns the two witnesses and their verdict."""

from __future__ import annotations

from dataclasses import dataclass

from hack.demo.errors import DemoError
from hack.demo.processes import ToolServer, tool_calls
from hack.demo.say import line
from hack.demo.scene import DEPLOYMENT
from hack.kubectl import Kubectl

TOOL = "resources_create_or_update"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """`calls` that reached the tool server, by its own log; `restarts` of the Deployment: revisions after the first."""

    calls: int
    restarts: int


def gather(admin: Kubectl, server: ToolServer) -> Proof:
    sets = admin.json("get", "replicasets", "--selector", f"app={DEPLOYMENT}")["items"]
    return Proof(calls=tool_calls(server, TOOL), restarts=len(sets) - 1)


def judge(proof: Proof, *, approved: bool) -> None:
    """Says what the witnesses saw. Raises DemoError if it isn't what was decided."""
    wanted = 1 if approved else 0
    line(f"the tool server's log has {proof.calls} call(s) of {TOOL}")
    line(f"Deployment {DEPLOYMENT} has {proof.restarts} ReplicaSet(s) beside its first, so many times was it restarted")
    if proof != Proof(calls=wanted, restarts=wanted):
        raise DemoError(f"{wanted} was wanted of both. This must not happen: please report it with the folder of logs.")
