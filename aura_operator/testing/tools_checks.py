"""What any implementation of the tools port must do: checks that run against a user's own as against the shipped ones.

Owns the checks; the ground to run them on is the caller's. They look at what the server received, the only witness of
what happened, and at what the port says of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from aura_operator.agent.ports import BeforeSend, Tools
from aura_operator.agent.specs import ToolCall, ToolOutcome
from aura_operator.core.digests import schema_digest
from aura_operator.core.entries import Outcome
from aura_operator.errors import FencedError
from aura_operator.testing.ledger import IDEMPOTENCY_KEY

LIMIT_BYTES = 100_000
SLACK_SECONDS = 5.0  # beyond a call's time: what a loaded machine may need to notice
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsGround:
    """Tools to check, and one tool of theirs that behaves as its arguments (JSON texts) ask.

    `tools` has been started by nobody yet. `answering` makes the tool return some text at once, `failing` makes it run
    and report an error, `hanging` makes it never answer, `large` makes it return more than 1000 bytes; `unfit` is an
    object that breaks its schema. `received` gives the idempotency keys (`meta`) of all calls that reached the tool so
    far, in order; it reads what the tool itself wrote down, whatever became of the call.
    """

    tools: Tools
    tool: str
    answering: str
    failing: str
    hanging: str
    large: str
    unfit: str
    received: Callable[[], list[str]]

    async def call(
        self,
        arguments: str,
        key: str = "key",
        *,
        tool: str | None = None,
        timeout_seconds: float = 20.0,
        limit_bytes: int = LIMIT_BYTES,
        before_send: BeforeSend | None = None,
    ) -> ToolOutcome:
        """Calls the tool, or another one that is named."""
        call = ToolCall(
            tool=tool or self.tool,
            arguments=arguments,
            meta={IDEMPOTENCY_KEY: key},
            timeout_seconds=timeout_seconds,
            limit_bytes=limit_bytes,
        )
        return await self.tools.call(call, before_send or _at_once)

    async def arrived(self, key: str) -> None:
        """Returns once the call with that key has reached the tool."""
        async with asyncio.timeout(SLACK_SECONDS):
            while key not in self.received():  # noqa: ASYNC110 - what the tool wrote down may be a file of its own
                await asyncio.sleep(0.01)


Check = Callable[[ToolsGround], Coroutine[Any, Any, None]]


async def tools_have_names_that_every_provider_takes(ground: ToolsGround) -> None:
    await ground.tools.start()
    assert ground.tool in ground.tools.tools
    for name, spec in ground.tools.tools.items():
        assert name == spec.name and _NAME.fullmatch(name), f"{name!r} is no name for a tool"
        assert name.startswith(f"{spec.server}__"), f"{name!r} doesn't begin with its server's name {spec.server!r}"


async def a_digest_follows_from_name_and_schema(ground: ToolsGround) -> None:
    await ground.tools.start()
    for name, spec in ground.tools.tools.items():
        assert spec.schema_digest == schema_digest(name, spec.input_schema), f"{name} has a digest of something else"


async def starting_again_changes_nothing(ground: ToolsGround) -> None:
    await ground.tools.start()
    before = dict(ground.tools.tools)
    await ground.tools.start()
    assert dict(ground.tools.tools) == before


async def a_fresh_look_gives_the_tool_as_it_is_and_none_for_an_unknown_one(ground: ToolsGround) -> None:
    await ground.tools.start()
    assert await ground.tools.fresh(ground.tool) == ground.tools.tools[ground.tool]
    assert await ground.tools.fresh("nobody__nothing") is None


async def a_call_reaches_the_tool_once_with_its_key_after_the_last_check(ground: ToolsGround) -> None:
    await ground.tools.start()
    received_before: list[list[str]] = []

    async def last_check() -> None:
        await asyncio.sleep(0.1)  # long enough for a call that was out already to be written down
        received_before.append(ground.received())

    outcome = await ground.call(ground.answering, before_send=last_check)
    assert outcome.status is Outcome.OK, outcome
    assert received_before and not any(received_before), "it was sent before `before_send` returned"
    assert ground.received() == ["key"]


async def what_the_last_check_raises_passes_through_and_nothing_is_sent(ground: ToolsGround) -> None:
    await ground.tools.start()

    async def fenced() -> None:
        raise FencedError("not the owner any more")

    try:
        outcome = await ground.call(ground.answering, "refused", before_send=fenced)
    except FencedError:
        pass
    else:
        raise AssertionError(f"what `before_send` raised was swallowed: {outcome}")
    assert (await ground.call(ground.answering, "next")).status is Outcome.OK
    assert ground.received() == ["next"]


async def an_unknown_tool_is_an_error_that_nobody_was_asked_about(ground: ToolsGround) -> None:
    await ground.tools.start()
    outcome = await ground.call(ground.answering, tool="nobody__nothing", before_send=_never_asked)
    assert outcome.status is Outcome.ERROR, f"a tool that isn't there is an ERROR, not {outcome}"
    assert ground.tool in outcome.text, f"the text doesn't name the tools that there are: {outcome.text!r}"
    assert ground.received() == [], "the call was sent"


async def arguments_that_do_not_fit_are_an_error_that_nobody_was_asked_about(ground: ToolsGround) -> None:
    await ground.tools.start()
    for arguments in (ground.unfit, "{", "[]"):
        outcome = await ground.call(arguments, before_send=_never_asked)
        assert outcome.status is Outcome.ERROR and outcome.text, outcome
    assert ground.received() == []


async def a_tool_that_fails_is_an_error_that_happened(ground: ToolsGround) -> None:
    await ground.tools.start()
    outcome = await ground.call(ground.failing)
    assert outcome.status is Outcome.ERROR and outcome.text, outcome
    assert ground.received() == ["key"]


async def a_tool_that_never_answers_is_in_doubt_within_its_time(ground: ToolsGround) -> None:
    await ground.tools.start()
    outcome = await _in_time(ground.call(ground.hanging, timeout_seconds=1.0))
    assert outcome.status is Outcome.UNKNOWN, outcome
    assert ground.received() == ["key"]


async def what_was_not_sent_in_its_time_never_is(ground: ToolsGround) -> None:
    await ground.tools.start()
    outcome = await _in_time(ground.call(ground.answering, "late", timeout_seconds=0.5, before_send=_never))
    assert outcome.status is Outcome.NOT_SENT, outcome
    assert (await ground.call(ground.answering, "next")).status is Outcome.OK
    assert ground.received() == ["next"]


async def one_call_in_trouble_holds_up_no_other(ground: ToolsGround) -> None:
    await ground.tools.start()
    hanging = asyncio.ensure_future(ground.call(ground.hanging, "hanging", timeout_seconds=3.0))
    await ground.arrived("hanging")
    assert (await _in_time(ground.call(ground.answering, "beside", timeout_seconds=1.0))).status is Outcome.OK
    assert not hanging.done(), "the other call ended first"
    assert (await hanging).status is Outcome.UNKNOWN


async def a_cancelled_call_ends_at_once_and_the_next_one_works(ground: ToolsGround) -> None:
    await ground.tools.start()
    hanging = asyncio.ensure_future(ground.call(ground.hanging, "hanging"))
    await ground.arrived("hanging")
    hanging.cancel()
    await _in_time(asyncio.wait({hanging}))
    assert hanging.cancelled(), "a cancelled call has to raise CancelledError"
    assert (await ground.call(ground.answering, "next")).status is Outcome.OK


async def a_text_is_cut_to_the_limit_and_its_size_is_told(ground: ToolsGround) -> None:
    await ground.tools.start()
    whole = await ground.call(ground.large)
    cut = await ground.call(ground.large, limit_bytes=300)
    assert whole.size_bytes == len(whole.text.encode()) > 1000
    assert len(cut.text.encode()) <= 300 and cut.size_bytes == whole.size_bytes
    assert str(whole.size_bytes) in cut.text, "a model that isn't told of the cut takes the rest for all there is"


async def closing_ends_what_runs_and_may_be_done_twice(ground: ToolsGround) -> None:
    await ground.tools.start()
    hanging = asyncio.ensure_future(ground.call(ground.hanging, "hanging"))
    await ground.arrived("hanging")
    await _in_time(ground.tools.aclose())
    await _in_time(asyncio.wait({hanging}))
    assert not hanging.cancelled(), "nobody cancelled the call"
    assert hanging.result().status is Outcome.UNKNOWN, hanging.result()
    await ground.tools.aclose()


TOOLS_CHECKS: tuple[Check, ...] = (
    tools_have_names_that_every_provider_takes,
    a_digest_follows_from_name_and_schema,
    starting_again_changes_nothing,
    a_fresh_look_gives_the_tool_as_it_is_and_none_for_an_unknown_one,
    a_call_reaches_the_tool_once_with_its_key_after_the_last_check,
    what_the_last_check_raises_passes_through_and_nothing_is_sent,
    an_unknown_tool_is_an_error_that_nobody_was_asked_about,
    arguments_that_do_not_fit_are_an_error_that_nobody_was_asked_about,
    a_tool_that_fails_is_an_error_that_happened,
    a_tool_that_never_answers_is_in_doubt_within_its_time,
    what_was_not_sent_in_its_time_never_is,
    one_call_in_trouble_holds_up_no_other,
    a_cancelled_call_ends_at_once_and_the_next_one_works,
    a_text_is_cut_to_the_limit_and_its_size_is_told,
    closing_ends_what_runs_and_may_be_done_twice,
)


async def check_tools(make: Callable[[], AbstractAsyncContextManager[ToolsGround]]) -> None:
    """Runs all checks, one after the other, each on a ground of its own. Takes some five seconds and more.

    To see each check as a test of its own, parametrise a test with `TOOLS_CHECKS` and await `check(ground)`.

    Args:
        make: gives the ground of one check: unstarted Tools, and a tool that has received nothing. Its context manager
            closes the tools, which may be closed already, and ends what is behind them.

    Raises:
        AssertionError: the Tools don't do what the port says; a note names the check.
        Exception: whatever else the Tools raise, with the same note.
    """
    for check in TOOLS_CHECKS:
        try:
            async with make() as ground:
                await check(ground)
        except Exception as error:
            error.add_note(f"tools check: {check.__name__}")
            raise


async def _in_time(work: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(SLACK_SECONDS):
            return await work
    except TimeoutError:
        raise AssertionError(f"it took more than {SLACK_SECONDS:g} s") from None


async def _at_once() -> None:
    pass


async def _never() -> None:
    await asyncio.Event().wait()


async def _never_asked() -> None:
    raise AssertionError("`before_send` was awaited for a call that can't be made")
