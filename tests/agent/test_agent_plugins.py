"""A model provider that another distribution brings: installed as pip would, found by its prefix, run to an answer."""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from aura_operator.agent.models import client as model_client
from aura_operator.agent.models.client import ModelClient
from aura_operator.agent.models.conversation import Conversation
from aura_operator.agent.models.plugins import GROUP
from aura_operator.agent.models.settings import ModelSettings
from aura_operator.agent.models.turn import ModelTurn
from aura_operator.core.transcript import UserInput
from aura_operator.errors import ConfigurationError
from tests.agent.desk import ROOT, said

KEY = "sk-of-the-plugin-1234567"

BROKEN = """
def breaks(settings):
    raise OSError(f"no licence for {settings.api_key}")


def no_model(settings):
    return "parrot"
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution with these entry points on the path: a module, and the metadata that an installer writes."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def install(distribution: str, source: str, **points: str) -> None:
        (tmp_path / f"{distribution}.py").write_text(source)
        metadata = tmp_path / f"{distribution}-1.2.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        lines = [f"{prefix} = {target}" for prefix, target in points.items()]
        (metadata / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))

    return install


async def ask(name: str) -> ModelTurn:
    client = ModelClient(ModelSettings(name=name, api_key=KEY))
    try:
        return await client.respond(Conversation("", lambda payload: ""), (UserInput(text="hello"),), ())
    finally:
        await client.aclose()


async def failure(name: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        await ask(name)
    return caught.value


async def test_the_provider_of_the_documentation_is_found_by_its_prefix_and_answers(install: Install) -> None:
    page = (ROOT / "docs" / "extending.md").read_text()
    (points,) = re.findall(rf'```toml\n\[project.entry-points."{GROUP}"\]\n(.*?)```', page, re.DOTALL)
    source, check = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]
    install("parrots", source, **tomllib.loads(points))
    checks: dict[str, Callable[[], None]] = {}
    exec(check, checks)
    await asyncio.to_thread(checks["test_my_provider"])

    turn = await ask("parrot:polly")

    assert said(turn) == "polly says: hello"
    assert turn.calls == () and '"fmt"' in turn.payload


async def test_a_plugin_that_cannot_be_loaded_is_named_with_its_distribution_and_the_remedy(install: Install) -> None:
    install("moved", "", gone="moved:nothing_here")

    error = await failure("gone:x")

    assert error.reason == "BadModelProvider"
    assert "'gone:x'" in str(error) and "'gone' of moved 1.2 (moved:nothing_here)" in str(error)
    assert "in the worker's image" in str(error)


async def test_what_a_broken_factory_says_is_told_without_the_key(install: Install) -> None:
    install("broken", BROKEN, breaks="broken:breaks")

    error = await failure("breaks:x")

    assert "no licence for [redacted]" in str(error) and KEY not in str(error)


@pytest.mark.behaviour(43)
@pytest.mark.parametrize("ends", ["SystemExit('no licence')", "KeyboardInterrupt()", "asyncio.CancelledError()"])
async def test_a_factory_that_would_end_the_process_ends_its_task_only(ends: str, install: Install) -> None:
    install("quitter", f"import asyncio\n\n\ndef quits(settings):\n    raise {ends}\n", quit="quitter:quits")
    error = await failure("quit:x")
    assert error.reason == "BadModelProvider" and "quitter 1.2" in str(error)


@pytest.mark.behaviour(43)
async def test_a_factory_that_never_ends_is_given_up_shared_and_holds_up_nobody(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "import threading\n\ncalls = []\n\n\ndef hangs(settings):\n    calls.append(1)\n    threading.Event().wait()\n"
    )
    install("hanger", source, hang="hanger:hangs")
    monkeypatch.setattr(model_client, "BUILD_SECONDS", 0.5)
    client = ModelClient(ModelSettings(name="hang:x", api_key=KEY))

    async def ask_it() -> str:
        with pytest.raises(ConfigurationError) as caught:
            await client.respond(Conversation("", lambda payload: ""), (UserInput(text="hello"),), ())
        return f"{caught.value.reason}: {caught.value}"

    asked = [asyncio.create_task(ask_it()) for _ in range(40)]
    await asyncio.sleep(0.1)
    asked.pop().cancel()  # the others still get their answer
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
    answers = set(await asyncio.gather(*asked))
    assert len(answers) == 1 and "BadModelProvider" in (said := answers.pop()) and "not there within 0.5 s" in said
    assert sum(sys.modules["hanger"].calls) == 1
    await client.aclose()


async def test_a_model_that_gives_up_by_itself_is_not_said_to_have_taken_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Impatient:
        async def __aenter__(self) -> None:
            raise TimeoutError("the licence server is silent")

        async def __aexit__(self, *_: object) -> None: ...

    monkeypatch.setattr(model_client, "_built", lambda *_: Impatient())
    error = await failure("impatient:x")
    assert error.reason == "BadModelProvider" and "the licence server is silent" in str(error)


async def test_a_factory_that_makes_no_model_is_told(install: Install) -> None:
    install("strings", BROKEN, no_model="strings:no_model")

    assert "made a str, not a pydantic-ai Model" in str(await failure("no_model:x"))


async def test_two_distributions_with_one_prefix_are_both_named(install: Install) -> None:
    install("first", BROKEN, twice="first:breaks")
    install("second", BROKEN, twice="second:breaks")

    error = await failure("twice:x")

    assert "of first 1.2" in str(error) and "of second 1.2" in str(error)


async def test_a_prefix_of_nobody_is_told_with_the_way_to_bring_one() -> None:
    error = await failure("nobody-has-this:x")

    assert error.reason == "BadModelName" and GROUP in str(error)
