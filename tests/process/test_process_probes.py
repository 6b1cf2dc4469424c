"""The probes tell the truth: 503 with the reason, and one line in the log for each change."""

from __future__ import annotations

import socket
from typing import Any

import aiohttp
import pytest
import structlog

from aura_operator.errors import ConfigurationError
from aura_operator.process import probes


class Patient:
    """Whoever is asked how it is."""

    def __init__(self) -> None:
        self.unhealthy: str | None = None
        self.not_ready: str | None = "it waits for its Lease"


async def answer(port: int, probe: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{probe}") as response:
        return response.status, await response.text()


def served(patient: Patient, port: int = 0) -> Any:
    return probes.serve("127.0.0.1", port, unhealthy=lambda: patient.unhealthy, not_ready=lambda: patient.not_ready)


async def test_a_probe_says_why() -> None:
    patient = Patient()
    async with served(patient) as port:
        assert await answer(port, "/healthz") == (200, "ok\n")
        assert await answer(port, "/readyz") == (503, "it waits for its Lease\n")
        patient.not_ready, patient.unhealthy = None, "the watch is deaf"
        assert await answer(port, "/healthz") == (503, "the watch is deaf\n")
        assert await answer(port, "/readyz") == (200, "ok\n")


async def test_each_change_is_logged_once_and_a_count_is_no_change() -> None:
    patient = Patient()
    with structlog.testing.capture_logs() as logs:
        async with served(patient) as port:
            for why in ("no word for 3 s", "no word for 13 s", None, None, "no word for 1 s"):
                patient.not_ready = why
                await answer(port, "/readyz")
    assert [line.get("why") for line in logs] == ["no word for 3 s", None, "no word for 1 s"]
    assert {line["probe"] for line in logs} == {"/readyz"}


async def test_a_port_that_is_taken_is_an_error_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"at 127.0.0.1:{port}: .*choose --probe-host and --probe-port"):
            async with served(Patient(), port):
                pass
