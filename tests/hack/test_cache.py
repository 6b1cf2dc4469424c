"""The cache of built programs: one builds, the others wait, and half a build is never taken for a whole one."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hack.cluster.cache import cached
from hack.progress import Progress


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "aura-operator"


def test_of_two_builders_at_once_one_builds_and_both_get_the_result() -> None:
    builds: list[Path] = []
    other_asks = threading.Barrier(2)

    def build(folder: Path, _progress: Progress) -> None:
        builds.append(folder)
        (folder / "program").write_text("whole")

    def ask() -> str:
        other_asks.wait()
        return (cached("thing-1", build, title="building a thing") / "program").read_text()

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(ask) for _ in range(2)]
    assert [answer.result() for answer in answers] == ["whole", "whole"]
    assert len(builds) == 1


def test_a_build_that_fails_leaves_nothing_and_the_next_one_starts_afresh(cache: Path) -> None:
    def fail(folder: Path, _progress: Progress) -> None:
        (folder / "program").write_text("ha")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        cached("thing-1", fail, title="building a thing")
    assert [entry.name for entry in cache.iterdir()] == [".thing-1.lock"]
    assert cached("thing-1", lambda folder, _: None, title="building a thing").is_dir()


def test_what_ends_at_once_is_not_announced() -> None:
    output = io.StringIO()
    with Progress("a quick step", stream=output) as step:
        step.detail = "all of it"
    assert output.getvalue() == ""


def test_what_takes_long_is_announced_with_time_and_detail_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hack.progress.QUIET_SECONDS", 0.01)
    announced = threading.Event()

    class Output(io.StringIO):
        def flush(self) -> None:
            announced.set()

    output = Output()
    with Progress("a long step", stream=output) as step:
        step.detail = "package 7"
        assert announced.wait(10)
    assert output.getvalue().splitlines() == ["a long step … 0 s: package 7", "a long step: done after 0 s"]
