"""`python -m hack.demo`: the demo on the command line. Owns arguments, setting up, ending, exit codes."""

from __future__ import annotations

import argparse
import io
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from aura_operator.errors import AuraError
from hack.cluster import AnyCluster, tools
from hack.demo import proof, removal, scene
from hack.demo.incident import Figures, Incident, play
from hack.demo.place import CURRENT, DEFAULT_DIRECTORY, LOCAL, Place, Record
from hack.demo.processes import background, end_all, tool_server
from hack.demo.proof import Proof
from hack.demo.say import heading, line
from hack.kubectl import Kubectl
from hack.progress import Progress


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    place = Place(options.directory)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # whoever reads along through a pipe sees each line at once
    # `kill` ends it like Ctrl-C does.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if options.verb == "down":
            removal.remove(place)
            return 0
        _up(place, options)
    except (AuraError, OSError) as error:
        _stop(place)
        print(f"demo: {error}", file=sys.stderr)
        print(f"demo: failed; logs are in {place.logs}. Again: `make demo`; tidy up: `make demo-down`", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _stop(place)
        print("\ndemo: interrupted; nothing of it runs any more", file=sys.stderr)
        print("demo: `make demo` starts it anew (what was built is kept); `make demo-down` tidies up", file=sys.stderr)
        return 130
    return 0


def _up(place: Place, options: argparse.Namespace) -> None:
    began = time.monotonic()
    heading("Setting up")
    end_all(place)
    # Everything that may have to be built or fetched, before anything runs.
    tools.bin_folder()
    tools.kubernetes_mcp_server()
    cluster = _cluster(place, options.cluster)
    place.lay_out()
    here = scene.set_up(cluster)
    kubeconfigs = scene.kubeconfigs(cluster)
    processes = background(place, kubeconfigs)
    server, url = tool_server(place, kubeconfigs["tool-server"])
    scene.apply_agent(here.admin, url)
    line(f"Kubernetes at {cluster.server}; the chart is installed for namespace {scene.NAMESPACE}")
    if options.cluster == LOCAL:
        line("this Kubernetes is real, but has no nodes: Pods stay Pending, and a restart shows as a new ReplicaSet")
    line(f"kubernetes-mcp-server answers at {url}; its account may read Pods and events, and patch Deployments")
    line("agent sre has a scripted model (examples/incident/agent.yaml); everything else is real")
    line(f"logs are in {place.logs}")
    figures = play(Incident(scene=here, processes=processes), decides_itself=options.yes)
    seen = proof.gather(here.admin, server)
    proof.judge(seen, approved=figures.approved)
    with Progress("ending the processes"):
        end_all(place)
    heading("Look around; `make demo-down` removes all of it")
    line(f"export KUBECONFIG={here.admin.kubeconfig} PATH={tools.bin_folder()}:$PATH")
    line(f"kubectl -n {scene.NAMESPACE} describe auratask {scene.TASK}")
    print(_last_line(figures, seen, time.monotonic() - began), flush=True)


def _cluster(place: Place, kind: str) -> AnyCluster:
    """The cluster, as empty of earlier demos as if there had been none."""
    if kind == LOCAL:
        place.record = Record(cluster=LOCAL)
        place.local.down()
        place.local.up()
        return place.local
    cluster = place.existing()
    before = place.record
    again = before is not None and before.cluster == CURRENT and before.server == cluster.server
    admin = Kubectl(cluster.kubeconfig)
    scene.demand_fit(admin, again=again)
    if not again:
        place.record = Record(
            cluster=CURRENT,
            server=cluster.server,
            kubeconfig=str(cluster.kubeconfig),
            operator_namespace=not scene.has_operator_namespace(admin),
        )
    scene.clear(admin)
    return cluster


def _stop(place: Place) -> None:
    """Ends what runs on this machine. What a current cluster holds stays until `down`."""
    # A second Ctrl-C would leave half of it behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    end_all(place)
    place.local.down()


def _last_line(figures: Figures, seen: Proof, seconds: float) -> str:
    delay = "none" if figures.decision_to_call is None else f"{figures.decision_to_call:.3f}s"
    return (
        f"demo: ok kill-to-next-step={figures.kill_to_next_step:.2f}s "
        f"all-killed-to-ready={figures.all_killed_to_ready:.2f}s decision-to-call={delay} "
        f"restarts={seen.restarts} tool-calls={seen.calls} "
        f"deciders={','.join(figures.deciders)} total={seconds:.0f}s"
    )


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.demo", description="A task outlives its worker.")
    parser.add_argument("verb", nargs="?", choices=["up", "down"], default="up", help="play it, or remove all of it")
    parser.add_argument("--yes", action="store_true", help="let a second user decide instead of you")
    parser.add_argument("--cluster", choices=[LOCAL, CURRENT], default=LOCAL, help="a local one, or your kubeconfig's")
    parser.add_argument(
        "--directory", type=Path, default=DEFAULT_DIRECTORY, help="where cluster and logs live (%(default)s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
