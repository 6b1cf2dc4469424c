"""What a worker asks of a model and of tools. Owns the two ports: whoever implements one is bound by what it says here.

Their implementations: `models/client.py` (providers, through pydantic-ai) and `mcp/toolbox.py` (MCP servers). Checks
that any Tools must pass are shipped: `testing/tools_checks.py`. Imports neither library.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from aura_operator.agent.models.turn import ModelTurn
from aura_operator.agent.specs import ToolCall, ToolOutcome, ToolSpec
from aura_operator.core.transcript import Item

if TYPE_CHECKING:
    from aura_operator.agent.models.conversation import Conversation


BeforeSend = Callable[[], Awaitable[None]]
"""The last check before a call goes out: whoever makes the call may have lost the right to it meanwhile."""


class Model(Protocol):
    """One language model. Shared by the tasks of one agent revision; requests run side by side.

    It keeps nothing between two requests: all that was said before comes with each one, since the next request may be
    another process's.
    """

    async def respond(
        self, conversation: Conversation, transcript: Sequence[Item], tools: Sequence[ToolSpec]
    ) -> ModelTurn:
        """Asks once, and returns the whole response.

        `transcript` is what the task's journal holds of the talk, oldest first. `conversation.messages(transcript)`
        makes pydantic-ai messages of it, and is the same object for all requests of a task. `tools` may be called; an
        empty sequence means that none may.

        Raises ModelError for whatever goes wrong with the request or the response, a response that broke off and the
        model's own time limit included: `retriable` says whether the same request may succeed later, `retry_after`
        (seconds) when the provider asked for patience. Raises ConfigurationError where there can be no such model,
        and JournalError where the transcript makes no conversation. No message holds a secret.

        The caller repeats, an implementation never does: each attempt counts against the agent's retries. Cancelling
        the calling task ends the request at once; that a provider may still charge for it is accepted.
        """
        ...

    async def aclose(self) -> None:
        """Closes what is open. A request that still runs fails. Doing it again changes nothing."""
        ...


class Tools(Protocol):
    """All tools of one agent, but the built-in ones. Shared by the tasks of one revision for hours; calls run side by
    side, and one that is in trouble holds up no other."""

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The tools by name, as they were listed last; none before `start`. Reading it takes no time.

        A name is `<server>__<tool>`, at most 64 characters of A-Z a-z 0-9 _ -, and equals the spec's own.
        """
        ...

    async def start(self) -> None:
        """Connects and lists the tools. Raises ToolServerError, within a time of the implementation's own, naming the
        server and the remedy; it may then be called again. Once it succeeded, calling it again changes nothing."""
        ...

    async def fresh(self, tool: str) -> ToolSpec | None:
        """A tool as its server lists it now, None if it is gone or never was. Raises ToolServerError.

        Asked before a call that a person approved some time ago: what runs must be what was shown.
        """
        ...

    async def call(self, call: ToolCall, before_send: BeforeSend) -> ToolOutcome:
        """Calls a tool once, and says truthfully what is known of it afterwards.

        `before_send` is awaited right before the first byte goes out, when nothing else is in the way; if it raises,
        nothing is sent and its exception passes through. Nothing else is raised; what goes wrong is in the outcome's
        `status`:

        - OK and ERROR: the call happened, or can't (an unknown tool, arguments that don't fit its schema). The text
          for an unknown tool names those that there are, so that the model can go on with one of them.
        - NOT_SENT: certain that no server has had it. Only then may it be sent again, here or by the caller.
        - UNKNOWN: all the rest. Whatever is in doubt after the first byte is UNKNOWN: no answer within
          the call's `timeout_seconds` (which bound `before_send` too), a connection that was cut, `aclose`.

        The outcome's `text` is no longer than the call's `limit_bytes`, with a mark where it was cut, and free of
        secrets. Cancelling the calling task asks the server to stop and raises CancelledError; what the tool did is
        then unknown.
        """
        ...

    async def aclose(self) -> None:
        """Leaves all servers: calls that still run end, and child processes have ended when this returns.

        Doing it again changes nothing.
        """
        ...
