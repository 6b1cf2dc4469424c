"""`python -m hack.cluster`: the local cluster on the command line. Owns arguments and what is printed."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from hack.cluster import tools
from hack.cluster.cluster import DEFAULT_DIRECTORY, Cluster, names
from hack.cluster.errors import ClusterError


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # So that `kill` ends a start half done the same way as Ctrl-C: by taking back what it began.
    signal.signal(signal.SIGTERM, _exit)
    try:
        return int(options.run(options))
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; nothing was left half done", file=sys.stderr)
        return 130


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _up(options: argparse.Namespace) -> int:
    cluster, began = _cluster(options), time.monotonic()
    if cluster.running:
        print(f"cluster {cluster.name} is running at {cluster.server}")
    else:
        cluster.up()
        print(f"cluster {cluster.name} is up at {cluster.server} after {time.monotonic() - began:.1f} s")
    print(f"export KUBECONFIG={cluster.kubeconfig}\nexport PATH={tools.bin_folder()}:$PATH")
    return 0


def _down(options: argparse.Namespace) -> int:
    cluster = _cluster(options)
    was_there = cluster.folder.exists()
    cluster.down()
    print(f"cluster {cluster.name} is gone" if was_there else f"there is no cluster {cluster.name}")
    return 0


def _status(options: argparse.Namespace) -> int:
    cluster = _cluster(options)
    if not cluster.exists:
        print(f"there is no cluster {cluster.name} in {cluster.folder.parent}")
        return 1
    print(f"cluster {cluster.name} at {cluster.server} in {cluster.folder}")
    for component, process in cluster.processes().items():
        print(f"  {component.value:<24} {f'running, pid {process.pid}' if process else 'not running'}")
    return 0 if cluster.running else 1


def _list(options: argparse.Namespace) -> int:
    for name in names(options.dir):
        cluster = Cluster(name, options.dir)
        print(f"{name:<24} {'running' if cluster.running else 'not running'}")
    return 0


def _kubeconfig(options: argparse.Namespace) -> int:
    cluster = _cluster(options)
    # Asks for the address first, so that a cluster that isn't there is named with its remedy.
    print(cluster.kubeconfig if cluster.server else "")
    return 0


def _user(options: argparse.Namespace) -> int:
    print(_cluster(options).add_user(options.user, options.group))
    return 0


def _tools(_options: argparse.Namespace) -> int:
    print(tools.bin_folder())
    return 0


def _mcp_server(_options: argparse.Namespace) -> int:
    print(tools.kubernetes_mcp_server())
    return 0


def _cluster(options: argparse.Namespace) -> Cluster:
    return Cluster(options.name, options.dir)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hack.cluster", description="A local Kubernetes without Docker or root."
    )
    parser.add_argument("--dir", type=Path, default=DEFAULT_DIRECTORY, help="where clusters live (%(default)s)")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name, run, text in (
        ("up", _up, "start a cluster and wait until it is ready; what runs already stays as it is"),
        ("down", _down, "end its processes and remove all of it"),
        ("status", _status, "show its processes"),
        ("kubeconfig", _kubeconfig, "print the path of its admin's kubeconfig"),
    ):
        verb = verbs.add_parser(name, help=text, description=text)
        verb.add_argument("name", nargs="?", default="dev", help="the cluster (%(default)s)")
        verb.set_defaults(run=run)
    user = verbs.add_parser("user", help="sign a client certificate and print the path of a kubeconfig with it")
    user.add_argument("user", help="the user's name")
    user.add_argument("--group", action="append", default=[], help="a group of the user; may be repeated")
    user.add_argument("--cluster", dest="name", default="dev", help="the cluster (%(default)s)")
    user.set_defaults(run=_user)
    verbs.add_parser("list", help="name the clusters").set_defaults(run=_list)
    verbs.add_parser("tools", help="print the folder with kubectl and helm, for PATH").set_defaults(run=_tools)
    verbs.add_parser("mcp-server", help="print the path of the Kubernetes MCP server").set_defaults(run=_mcp_server)
    return parser


if __name__ == "__main__":
    sys.exit(main())
