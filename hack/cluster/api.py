"""The few requests that bringing a cluster up takes, with the standard library. Not a client for anything else."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The API server on a loopback port, asked as the holder of a client certificate."""

    port: int
    ca: Path
    certificate: Path
    key: Path

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Returns the status and the answer (JSON, or text). Raises OSError or HTTPException where nobody answers."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.certificate, self.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=5)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
            is_json = (answer.headers.get("Content-Type") or "").startswith("application/json")
            return answer.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def answers(self, path: str) -> bool:
        try:
            return self.request("GET", path)[0] == 200
        except (OSError, http.client.HTTPException):
            return False
