"""Takes a demo away again: processes, cluster or what it put into one, files. Owns `make demo-down`."""

from __future__ import annotations

import shutil

from hack.demo import scene
from hack.demo.place import CURRENT, Place
from hack.demo.processes import end_all
from hack.kubectl import Kubectl


def remove(place: Place) -> None:
    """Removes all of it and says what stays. Does nothing where there is nothing."""
    record = place.record
    if record is None and not place.folder.exists():
        print("demo: there is nothing to remove")
        return
    ended = end_all(place)
    place.local.down()
    if record is not None and record.cluster == CURRENT:
        admin = Kubectl(place.recorded_cluster(record).kubeconfig)
        scene.clear(admin)
        scene.take_away(admin, operator_namespace=record.operator_namespace)
    shutil.rmtree(place.folder)
    print(f"demo: removed ({ended} processes were running)")
    if record is not None and record.cluster == CURRENT:
        print(f"demo: {record.server} keeps the CRDs and the admission policies, as the chart promises. They go with:")
        kept = "crds,validatingadmissionpolicies,validatingadmissionpolicybindings"
        kept += ",mutatingadmissionpolicies,mutatingadmissionpolicybindings"
        print(f"  kubectl delete {kept} -l app.kubernetes.io/name=aura-operator")
