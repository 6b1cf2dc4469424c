"""What every long-running process does: options, signals, probes, logs, closing. Knows no task and no agent.

A process of its own is a command with `process_options` that calls `run` with what makes its Service.
"""

from __future__ import annotations

from aura_operator.process.options import ProcessOptions, kubeconfig_option, process_options
from aura_operator.process.service import Ground, Make, Service, run

__all__ = ["Ground", "Make", "ProcessOptions", "Service", "kubeconfig_option", "process_options", "run"]
