"""The command `aura`: starts the processes and shows tasks. Owns flags, output and exit codes, no behaviour."""

from __future__ import annotations

import click

from aura_operator import __version__
from aura_operator.cli.controller import controller
from aura_operator.cli.timeline import timeline
from aura_operator.cli.worker import worker


@click.group(context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "AURA"})
@click.version_option(__version__, prog_name="aura")
def main() -> None:
    """Durable agent execution on Kubernetes."""


main.add_command(controller)
main.add_command(timeline)
main.add_command(worker)
