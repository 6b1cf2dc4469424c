"""Pod JSON as `kubectl get pod -o json` shows it, of a wanted size: what SRE agents read all day. Not noise."""

from __future__ import annotations

import json
import uuid
from random import Random


def pod_json(size_bytes: int, number: int = 0) -> str:
    """A list of pods in about `size_bytes`; another one for each `number`, always the same for the same."""
    random = Random(number)
    pods: list[object] = []
    while len(json.dumps({"items": pods})) < size_bytes:
        pods.append(_pod(random))
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})[:size_bytes]


def _pod(random: Random) -> dict[str, object]:
    uid = str(uuid.UUID(int=random.getrandbits(128)))
    name = f"checkout-{random.getrandbits(40):010x}-{random.getrandbits(20):05x}"
    started = f"2026-11-{random.randint(1, 28):02d}T{random.randint(0, 23):02d}:{random.randint(0, 59):02d}:00Z"
    image = f"registry.example/shop/checkout@sha256:{random.getrandbits(256):064x}"
    return {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": uid,
            "resourceVersion": str(random.randint(1, 10**7)),
            "creationTimestamp": started,
            "labels": {"app": "checkout", "pod-template-hash": name.split("-")[1], "tier": "backend"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name[:-6], "uid": uid}],
        },
        "spec": {
            "nodeName": f"node-{random.randint(1, 40)}",
            "containers": [
                {
                    "name": "app",
                    "image": image,
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "250m"}},
                    "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token"}],
                    "terminationMessagePath": "/dev/termination-log",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {
            "phase": "Running",
            "podIP": f"10.{random.randint(0, 255)}.{random.randint(0, 255)}.{random.randint(1, 254)}",
            "startTime": started,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": started}],
            "containerStatuses": [
                {"name": "app", "ready": True, "restartCount": random.randint(0, 9), "imageID": image, "started": True}
            ],
        },
    }
