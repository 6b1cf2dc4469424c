"""kubectl as a function. Owns how it is called and how its failure is told; decides nothing about what is asked."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from aura_operator.errors import AuraError
from hack.cluster import tools


class KubectlError(AuraError):
    """kubectl ended with an error; `stderr` is what it said."""

    reason = "KubectlFailed"

    def __init__(self, message: str, *, stderr: str) -> None:
        super().__init__(message)
        self.stderr = stderr


class Kubectl:
    """Runs the kubectl of the tools folder with one kubeconfig: `kubectl("get", "pods")` returns what it printed."""

    def __init__(self, kubeconfig: Path, *, namespace: str | None = None) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace

    def run(self, *arguments: str, stdin: str | object = None) -> subprocess.CompletedProcess[str]:
        """Runs it and returns how it ended, whatever that was. A `stdin` that is no text goes as JSON."""
        place = [] if self.namespace is None else ["--namespace", self.namespace]
        text = stdin if stdin is None or isinstance(stdin, str) else json.dumps(stdin)
        return subprocess.run(
            [str(tools.bin_folder() / "kubectl"), "--kubeconfig", str(self.kubeconfig), *place, *arguments],
            input=text if text is not None else "",
            capture_output=True,
            text=True,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str | object = None) -> str:
        """Returns what it printed. Raises KubectlError if it failed."""
        done = self.run(*arguments, stdin=stdin)
        if done.returncode != 0:
            said = done.stderr.strip()
            raise KubectlError(f"`kubectl {' '.join(arguments)}` failed ({done.returncode}): {said}", stderr=said)
        return done.stdout

    def json(self, *arguments: str, stdin: str | object = None) -> Any:
        return json.loads(self(*arguments, "--output", "json", stdin=stdin))

    def with_kubeconfig(self, kubeconfig: Path) -> Kubectl:
        """The same kubectl in the hands of another user."""
        return Kubectl(kubeconfig, namespace=self.namespace)

    def in_namespace(self, namespace: str) -> Kubectl:
        return Kubectl(self.kubeconfig, namespace=namespace)
