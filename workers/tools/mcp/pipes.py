"""An MCP server that is a command: started with a clean environment, spoken to over its pipes, ended with all that came of it."""

import asyncio
import contextlib
import logging
import math
import os
import subprocess
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from models.settings import settings
from workers.tools.clean import decode, escape_controls
from workers.tools.mcp.servers import Server
from workers.tools.sandbox import guarding, keeper, lease_clock
from workers.tools.sandbox.interpreter import compiled, environment, python
from workers.tools.sandbox.keeper import END_SECONDS

log = logging.getLogger(__name__)

_LAUNCHER = compiled(str(Path(__file__).with_name("launcher.py")))
_KEEPER_FOLDER = str(Path(keeper.__file__).parent)
_INHERITED = ("PATH", "HOME", "LANG")
_LEAVE_SECONDS = 2.0
"""How long a server may take to go by itself once its input has ended."""
_LOOK_SECONDS = 0.005
_RENEW_SECONDS = 0.5
_LOGGED_LINES, _LOGGED = 200, 500


class Pipes:
    """One started server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lines = 0
        self.patience = _LEAVE_SECONDS
        self.over = asyncio.Event()
        """It has closed its output, or its input: no answer comes any more."""
        self.too_long = False
        """It ended because it said more in one line than it may."""
        leash, self._leash = os.pipe()
        try:
            self.process = subprocess.Popen(  # noqa: S603 - the operator's command
                python(
                    _LAUNCHER, str(leash), str(os.getpid()), _KEEPER_FOLDER, guarding.mark(), server.command or "", *server.args
                ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(leash,),
                env=environment() | {name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(server.env),
                cwd=server.cwd,
                start_new_session=True,
            )
        except BaseException:
            os.close(self._leash)
            raise
        finally:
            os.close(leash)

    async def read(self, out: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass on its messages, one a line, until it says no more."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=settings().mcp_response_bytes)
        assert self.process.stdout is not None
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self.process.stdout)
        try:
            while True:
                if message := self._message(await reader.readuntil(b"\n")):
                    await out.send(message)
        except asyncio.LimitOverrunError:
            self.too_long = True
        except (asyncio.IncompleteReadError, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            pass
        finally:
            self.over.set()  # before anybody who waits is woken
            out.close()
            transport.close()

    def _message(self, line: bytes) -> SessionMessage | None:
        try:
            return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            self._log("said what is no message", line)
            return None

    async def write(self, into: MemoryObjectReceiveStream[SessionMessage], reading: asyncio.Task[None]) -> None:
        """Pass on our messages. If it has closed its input there will be no answers: `reading` ends."""
        loop = asyncio.get_running_loop()
        assert self.process.stdin is not None
        transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop), self.process.stdin)
        writer = asyncio.StreamWriter(transport, protocol, None, loop)
        try:
            async with into:
                async for message in into:
                    writer.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await writer.drain()
        except OSError:
            self.over.set()
            reading.cancel()
        finally:
            transport.close()

    async def listen(self) -> None:
        """Put what it prints to standard error into the log, up to a number of lines."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        assert self.process.stderr is not None
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self.process.stderr)
        try:
            while data := await reader.read(1 << 16):
                for line in data.splitlines():
                    self._log("said", line)
        finally:
            transport.close()

    def _log(self, what: str, line: bytes) -> None:
        self._lines += 1
        if self._lines <= _LOGGED_LINES:
            log.info("MCP server %s %s: %s", self._server.name, what, escape_controls(decode(line[:_LOGGED].strip())))
        elif self._lines == _LOGGED_LINES + 1:
            log.info("MCP server %s says more, which is not logged", self._server.name)

    async def renew(self) -> None:
        """Tell the launcher until when the leases hold, with each renewal: it ends the server of a worker that is frozen."""
        told = math.inf
        while True:
            if (until := lease_clock.until()) != told:
                os.write(self._leash, lease_clock.renewed(until))
                told = until
            await asyncio.sleep(_RENEW_SECONDS)

    async def close(self) -> None:
        """Let it go, or make it. Its input has been closed."""
        await self._gone(self.patience)
        os.close(self._leash)
        if not await self._gone(END_SECONDS + 1):
            log.error("MCP server %s: its launcher would not end", self._server.name)
            self.process.kill()
            await self._gone(END_SECONDS)

    async def _gone(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            while self.process.poll() is None:
                await asyncio.sleep(_LOOK_SECONDS)
        return self.process.poll() is not None


Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def started(server: Server) -> AsyncIterator[tuple[Pipes, Streams]]:
    """Start a server. Errors: OSError. Leaving takes up to `patience` and what killing takes."""
    pipes = Pipes(server)
    read_in, read_out = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_in, write_out = anyio.create_memory_object_stream[SessionMessage](0)
    reading, listening, renewing = _task(pipes.read(read_in)), _task(pipes.listen()), _task(pipes.renew())
    writing = _task(pipes.write(write_out, reading))
    try:
        yield pipes, (read_out, write_in)
    finally:
        with anyio.CancelScope(shield=True):
            read_out.close()
            write_in.close()  # the writer sends what it has, and closes the server's input
            await asyncio.wait({writing}, timeout=0.5)
            await _end(writing)
            await _end(renewing)
            await pipes.close()
            await _end(reading)
            await _end(listening)


def _task(what: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(what)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
