"""Options that several commands share, as one value. Owns their names, defaults, bounds and words, not their effect."""

from __future__ import annotations

import functools
import os
import re
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click

from aura_operator.process.logs import LEVELS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
NAME = re.compile(rf"(?=.{{1,253}}$){LABEL}(?:\.{LABEL})*")
NAMESPACE = re.compile(LABEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """What all long-running processes are told. `namespaces` empty: all of them. `probe_port` 0: any free one."""

    kubeconfig: str | None
    operator_namespace: str
    namespaces: tuple[str, ...]
    name: str
    pod_uid: str
    in_pod: bool
    probe_host: str
    probe_port: int
    log_level: str
    log_format: str

    @property
    def pod_owner(self) -> dict[str, str] | None:
        """The Pod as the owner of what goes with it; None outside a cluster, where there is no Pod."""
        if not self.in_pod:
            return None
        return {"apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": self.pod_uid}


def host_name() -> str:
    """The machine's name, as far as Kubernetes takes it for a name: `My-Mac.local` is my-mac.local."""
    return re.sub(r"[^-a-z0-9.]+|(?<![a-z0-9])\.|\.(?![a-z0-9])", "-", socket.gethostname().lower()).strip("-.") or "me"


def _demand(pattern: re.Pattern[str], what: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def check(_context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        for text in value if isinstance(value, tuple) else (value,):
            if not pattern.fullmatch(text):
                raise click.BadParameter(f"{text!r} is no {what}: small letters, digits and '-' only.")
        return value

    return check


_name = _demand(NAME, "name of a Kubernetes object")
_namespace = _demand(NAMESPACE, "name of a namespace")

kubeconfig_option: Decorator = click.option(
    "--kubeconfig",
    envvar="KUBECONFIG",
    default=None,
    help="Kubeconfig file; in a pod its service account, elsewhere kubectl's default.",
)

_OPTIONS: tuple[Decorator, ...] = (
    kubeconfig_option,
    click.option(
        "--operator-namespace",
        default="aura-system",
        show_default=True,
        callback=_namespace,
        help="Where the Leases are.",
    ),
    click.option(
        "--namespace",
        "namespaces",
        multiple=True,
        callback=_namespace,
        help="Watch this namespace only (repeatable); default all.",
    ),
    click.option(
        "--name",
        envvar="POD_NAME",
        default=host_name,
        show_default="the machine's name",
        callback=_name,
        help="Name of this process: its Pod's name.",
    ),
    click.option("--pod-uid", envvar="POD_UID", default=None, help="UID of its Pod; a random one outside a cluster."),
    click.option("--probe-host", default="127.0.0.1", show_default=True, help="Address of /healthz and /readyz."),
    click.option(
        "--probe-port",
        type=click.IntRange(0, 65535),
        default=8080,
        show_default=True,
        help="Port of /healthz and /readyz; 0: any free one.",
    ),
    click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True),
    click.option("--log-format", type=click.Choice(["json", "text"]), default="json", show_default=True),
)


def process_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command what all processes take; it gets them as its first argument, a ProcessOptions."""

    @functools.wraps(command)
    def collected(**given: Any) -> Any:
        given["in_pod"] = given["pod_uid"] is not None and "KUBERNETES_SERVICE_HOST" in os.environ
        given["pod_uid"] = given["pod_uid"] or str(uuid.uuid4())
        told = ProcessOptions(**{field.name: given.pop(field.name) for field in fields(ProcessOptions)})
        return command(told, **given)

    decorated: Callable[..., Any] = collected
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
