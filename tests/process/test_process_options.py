"""What `aura worker` and `aura controller` refuse to be told, and the sentence that says so."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from aura_operator.cli import main
from aura_operator.process.options import NAME, host_name


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--slots", "0"], "0 is not in the range x>=1"),
        (["--drain-seconds", "-5"], "-5.0 is not in the range x>=0"),
        (["--probe-port", "99999999"], "99999999 is not in the range 0<=x<=65535"),
        (["--probe-port", "-1"], "-1 is not in the range 0<=x<=65535"),
        (["--name", "My Worker"], "'My Worker' is no name of a Kubernetes object"),
        (["--name", "a" * 64], "is no name of a Kubernetes object"),
        (["--namespace", "a.b"], "'a.b' is no name of a namespace"),
        (["--operator-namespace", ""], "'' is no name of a namespace"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(main, ["worker", *arguments])
    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "isn't there; set KUBECONFIG or --kubeconfig"),
        ("a line\n", "is no kubeconfig: it isn't what `kubectl config view` shows"),
        ("", "is no kubeconfig: it isn't what `kubectl config view` shows"),
        ("a: [b\n", "is no kubeconfig: while parsing a flow sequence"),
        ("a: 1\n", "no cluster to talk to: "),
    ],
)
@pytest.mark.parametrize("command", [["timeline", "x"], ["worker"], ["controller"]])
def test_a_kubeconfig_that_is_none_is_named_in_one_sentence(
    command: list[str], content: str | None, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)
    done = CliRunner().invoke(main, [command[0], "--kubeconfig", str(file), *command[1:]])
    assert done.exit_code == 1
    assert str(file) in done.stderr
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["My-Mac.local", "worker_1", "-x-", "a..b", "a.-b", "Ä", "", "w-0"])
def test_a_process_can_be_named_after_any_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    assert re.fullmatch(NAME, host_name())
