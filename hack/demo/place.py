"""Where a demo happens: its folder, its cluster, and what it has put there. Owns the record that `down` goes by."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.cluster import CHECKOUT, Cluster, ExistingCluster
from hack.demo.errors import DemoError

DEFAULT_DIRECTORY = CHECKOUT / ".local"
CLUSTER_NAME = "demo"
LOCAL, CURRENT = "local", "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What `down` has to know: which cluster it was, and whether the demo made the operator's namespace there."""

    cluster: str
    server: str = ""
    kubeconfig: str = ""
    operator_namespace: bool = False


class Place:
    """Files of one demo under `directory`: `demo/` with logs and process records, `clusters/demo/` if it is local."""

    def __init__(self, directory: Path = DEFAULT_DIRECTORY) -> None:
        self.directory = directory.resolve()
        self.folder = self.directory / "demo"
        self.logs = self.folder / "logs"
        self.processes = self.folder / "processes"
        self.local = Cluster(CLUSTER_NAME, self.directory / "clusters")
        self._record = self.folder / "demo.json"

    def lay_out(self) -> None:
        for folder in (self.logs, self.processes):
            folder.mkdir(parents=True, exist_ok=True)
        for log in self.logs.iterdir():
            log.unlink()

    def existing(self) -> ExistingCluster:
        """The cluster of the current context; its kubeconfigs go into the demo's folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return ExistingCluster(self.folder)

    def recorded_cluster(self, record: Record) -> ExistingCluster:
        """The cluster that an earlier demo used, whatever the current context is by now."""
        return ExistingCluster(self.folder, Path(record.kubeconfig))

    @property
    def record(self) -> Record | None:
        try:
            return Record(**json.loads(self._record.read_text()))
        except FileNotFoundError:
            return None
        except (TypeError, ValueError) as error:
            raise DemoError(f"{self._record} can't be read ({error}); remove {self.folder} by hand.") from error

    @record.setter
    def record(self, record: Record) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._record.write_text(json.dumps(asdict(record)))
