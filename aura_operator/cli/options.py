"""Options that several commands share. Owns their names, defaults and words; what they mean is each command's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from aura_operator.telemetry.logs import LEVELS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

kubeconfig: Decorator = click.option(
    "--kubeconfig",
    envvar="KUBECONFIG",
    default=None,
    help="Kubeconfig file; in a pod its service account, elsewhere kubectl's default.",
)

_PROCESS: tuple[Decorator, ...] = (
    kubeconfig,
    click.option("--operator-namespace", default="aura-system", show_default=True, help="Where the Leases are."),
    click.option(
        "--namespace", "namespaces", multiple=True, help="Watch this namespace only (repeatable); default all."
    ),
    click.option("--probe-host", default="127.0.0.1", show_default=True, help="Address of /healthz and /readyz."),
    click.option(
        "--probe-port", default=8080, show_default=True, help="Port of /healthz and /readyz; 0: any free one."
    ),
    click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True),
    click.option("--log-format", type=click.Choice(["json", "text"]), default="json", show_default=True),
)


def process(command: Callable[..., Any]) -> Callable[..., Any]:
    """What all long-running processes take."""
    for option in reversed(_PROCESS):
        command = option(command)
    return command
