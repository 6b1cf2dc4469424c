"""Kubeconfig files. Owns their layout; each holds one cluster, one user, and all certificates in itself."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from hack.cluster.pki import KeyPair, write_private


def write_kubeconfig(
    path: Path, *, context: str, server: str, ca: bytes | None, user: str, credentials: KeyPair | str
) -> Path:
    """Writes a kubeconfig for `credentials`: a client certificate, or the text of a Bearer token. Returns `path`."""
    match credentials:
        case str():
            secret = {"token": credentials}
        case KeyPair():
            secret = {
                "client-certificate-data": _base64(credentials.certificate),
                "client-key-data": _base64(credentials.key),
            }
    # Without an authority the system's own are trusted.
    authority = {} if ca is None else {"certificate-authority-data": _base64(ca)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": {"server": server, **authority}}],
        "users": [{"name": user, "user": secret}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": user}}],
        "current-context": context,
    }
    # JSON is YAML, and it needs no library.
    write_private(path, (json.dumps(document, indent=2) + "\n").encode())
    return path


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
