"""An MCP server that is a child process and speaks on its standard streams, one JSON message a line.

Owns the process: its environment, its output, its end. It never outlives this process, where the kernel can promise it.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client._transport import ReadStream, WriteStream  # where `mcp.Client` itself takes them from
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError

from aura_operator.agent.mcp.delivery import CURRENT
from aura_operator.agent.mcp.servers import ServerSpec
from aura_operator.agent.mcp.transport_http import LARGEST_ANSWER_BYTES

_INHERITED = ("PATH", "HOME")  # all else of the worker's environment is nobody's business
_GOODBYE_SECONDS = 2.0  # between closing a child's input and asking it to end, and from there to killing it
_REMEMBERED_CHARACTERS = 1000  # of what a child wrote to its standard error, to explain its end
_PR_SET_PDEATHSIG = 1


class Child:
    """A running server. `said` is the end of what it wrote to its standard error."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said = ""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        return " ".join(self._said.split())

    async def listen_to_complaints(self) -> None:
        """Reads the standard error, so that a talkative child doesn't block on it."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(4096):
            self._said = (self._said + chunk.decode("utf-8", "replace"))[-_REMEMBERED_CHARACTERS:]

    async def end(self) -> None:
        """Closes its input, as the protocol has it, then asks its group to end, then kills it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            if await self._ended() or (self._signal(signal.SIGTERM) and await self._ended()):
                return
        finally:
            # Also for grandchildren that outlive a polite server, and when this very wait is cancelled.
            self._signal(signal.SIGKILL)
        await self._process.wait()

    async def _ended(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._process.wait()
                return True
        return False

    def _signal(self, number: signal.Signals) -> bool:
        try:
            os.killpg(self._process.pid, number)  # it leads its own group
        except (ProcessLookupError, PermissionError):
            return False
        return True


@asynccontextmanager
async def child_streams(
    spec: ServerSpec, started: Callable[[Child], None], ended: Callable[[], None]
) -> AsyncIterator[tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]]:
    """Starts the server and yields its streams, as MCP's client wants them. Raises OSError if it can't be started.

    `ended` is called when its output ends, which nobody else would notice before the next call.
    """
    process = await asyncio.create_subprocess_exec(
        spec.command or "",
        *spec.args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(spec.env),
        start_new_session=True,
        preexec_fn=_die_with_parent(),
        limit=LARGEST_ANSWER_BYTES,
    )
    child = Child(process)
    started(child)
    assert process.stdin is not None and process.stdout is not None
    sender, receiver = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    reading = asyncio.create_task(_read(process.stdout, sender))
    reading.add_done_callback(lambda _: ended())
    complaining = asyncio.create_task(child.listen_to_complaints())
    try:
        yield receiver, _Input(process.stdin)
    finally:
        reading.cancel()
        try:
            await child.end()
        finally:
            complaining.cancel()
            await asyncio.gather(reading, complaining, return_exceptions=True)
            receiver.close()


class _Input:
    """The child's standard input as MCP's write stream. `send` runs in the task of whoever makes the request."""

    def __init__(self, pipe: asyncio.StreamWriter) -> None:
        self._pipe = pipe

    async def send(self, item: SessionMessage, /) -> None:
        line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        delivery = CURRENT.get()
        if delivery is not None and isinstance(item.message, JSONRPCRequest) and item.message.method == "tools/call":
            await delivery.authorize()
            if self._nobody_reads():
                delivery.sent = False
                raise anyio.BrokenResourceError
        try:
            self._pipe.write(line)
            await self._pipe.drain()
        except (ConnectionError, RuntimeError) as error:
            raise anyio.BrokenResourceError from error  # as MCP's client knows it

    def _nobody_reads(self) -> bool:
        """Whether the other end is closed for certain, which the loop may not have noticed yet."""
        poll = select.poll()
        poll.register(self._pipe.get_extra_info("pipe").fileno(), 0)  # errors and hang-ups are always reported
        return bool(poll.poll(0))

    async def aclose(self) -> None:
        self._pipe.close()

    async def __aenter__(self) -> _Input:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


async def _read(pipe: asyncio.StreamReader, sender: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Passes each line on; closes the stream at the end, which MCP's client takes for the end of the connection."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with sender:
            while line := await _line(pipe):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValidationError as error:
                    await sender.send(error)  # a server that prints: MCP's client logs it
                else:
                    await sender.send(SessionMessage(message))


async def _line(pipe: asyncio.StreamReader) -> bytes:
    """The next line; nothing at the end of the output, and also when a line is too large to be kept."""
    try:
        return await pipe.readline()
    except (ValueError, ConnectionError):
        return b""


def _die_with_parent() -> Callable[[], None] | None:
    """What a child does between fork and exec, so that the kernel kills it when this process dies.

    Linux only. Elsewhere a server notices that its input ended. Everything is looked up before the fork: after it,
    in a process that had threads, little is safe.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()
    kill = int(signal.SIGKILL)

    def ask_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, kill, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)

    return ask_kernel
