"""Connections to MCP servers, kept between calls in one thread of the process.

A connection serves one call at a time. After a call it waits for the next one for `mcp_idle_seconds`, so that a command is not
started for each call. Over HTTP a connection serves one workspace, because a server may keep state for it. A forked process has
none of its parent's connections.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError

from models.settings import settings
from workers.tools.mcp.connecting import connect
from workers.tools.mcp.links import ServerLink
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import Unreachable

log = logging.getLogger(__name__)

T = TypeVar("T")

_REPORT_SECONDS = 1.0
"""Pause between two reports of a connection that the server's tools changed: a server may say so without end."""
_LISTEN_SECONDS = 2.0
"""How long a new connection waits until the server reports changes of its tools: the first call may cause a change."""
_MAX_IDLE = 100
_CLOSE_SECONDS = 20.0
_lock = threading.Lock()
_thread: "_Thread | None" = None
_inherited: list["_Thread"] = []
"""Threads of parent processes. They stay referenced: their finalisers would kill the parents' servers."""


def in_thread(function: "Callable[[Connections], Coroutine[Any, Any, T]]") -> "Future[T]":
    """Run a coroutine function in the thread of this process."""
    global _thread  # noqa: PLW0603 - one per process
    with _lock:
        if _thread is None:
            _thread = _Thread()
        return _thread.portal.start_task_soon(function, _thread.connections)


def close_all() -> None:
    """Close all idle connections of this process, end the servers that it started, and end the thread."""
    global _thread
    with _lock:
        thread, _thread = _thread, None
    if thread is not None:
        thread.stop()


def _forget() -> None:
    """Leave the connections to the parent, in a fork."""
    global _thread, _lock  # noqa: PLW0603 - one per process
    _lock = threading.Lock()
    if _thread is not None:
        _inherited.append(_thread)
        _thread = None


os.register_at_fork(after_in_child=_forget)


class _Thread:
    def __init__(self) -> None:
        self._stack = ExitStack()
        self.portal = self._stack.enter_context(start_blocking_portal(name="mcp"))
        self.connections = Connections()

    def stop(self) -> None:
        self.portal.call(self.connections.close)
        self._stack.close()


class Connections:
    """The idle connections. All methods run in the thread's event loop."""

    def __init__(self) -> None:
        self._idle: dict[_Connection, tuple[str, str]] = {}
        """The server and workspace of each. The one that waits longest comes first."""

    @asynccontextmanager
    async def link(
        self, server: Server, workspace_id: str, on_change: Callable[[], None], *, new: bool
    ) -> AsyncIterator[ServerLink]:
        """Open a connection for one call: an idle one, unless `new`, or a new one. Raises Unreachable.

        A new connection calls `on_change`, in a thread of its own, when the server's tools have changed.
        """
        key = (server.key, "" if server.url is None else workspace_id)
        connection = (None if new else self._take(key)) or _Connection(server, on_change)
        try:
            yield await connection.link()
        except BaseException:
            await connection.close()
            raise
        if connection.usable:
            self._keep(key, connection)
        else:
            await connection.close()

    def _take(self, key: tuple[str, str]) -> "_Connection | None":
        for connection in [connection for connection, other in self._idle.items() if other == key]:
            del self._idle[connection]
            connection.expiry.cancel()
            if connection.usable:
                return connection
            connection.end()
        return None

    def _keep(self, key: tuple[str, str], connection: "_Connection") -> None:
        while len(self._idle) >= _MAX_IDLE:
            self._drop(next(iter(self._idle)))
        self._idle[connection] = key
        loop = asyncio.get_running_loop()
        connection.expiry = loop.call_later(settings().mcp_idle_seconds, self._drop, connection)

    def _drop(self, connection: "_Connection") -> None:
        del self._idle[connection]
        connection.expiry.cancel()
        connection.end()

    async def close(self) -> None:
        """Close all idle connections."""
        idle = list(self._idle)
        for connection in idle:
            self._drop(connection)
        await asyncio.gather(*(connection.close() for connection in idle))


class _Connection:
    """One connection. A task of its own opens and closes it, as the SDK demands one task for both."""

    expiry: asyncio.TimerHandle

    def __init__(self, server: Server, on_change: Callable[[], None]) -> None:
        self._server = server
        self._on_change = on_change
        self._link: asyncio.Future[ServerLink] = asyncio.get_running_loop().create_future()
        self._end = asyncio.Event()
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._hold())

    @property
    def usable(self) -> bool:
        """True if a further call may use it."""
        link = self._link.result()
        return not (link.broken or link.over or self._task.done())

    async def link(self) -> ServerLink:
        """Return the link, once it is open. Raises Unreachable."""
        return await asyncio.shield(self._link)

    def end(self) -> None:
        """Begin to close."""
        self._end.set()
        if not self._link.done():
            self._task.cancel()

    async def close(self) -> None:
        """End the task and wait until the connection is closed."""
        self.end()
        await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)

    async def _hold(self) -> None:
        reporting = asyncio.create_task(self._report_changes())
        try:
            async with connect(self._server, self._changed.set) as link, _changes_reported(link):
                self._link.set_result(link)
                await self._end.wait()
        except Exception as error:  # noqa: BLE001 - the SDK raises its own errors, in groups
            if not self._link.done():
                failure = Unreachable("connection", f"{self._server.label} cannot be reached: the connection failed")
                self._link.set_exception(error if isinstance(error, Unreachable) else failure)
            log.info("MCP server %s: the connection ended: %s", self._server.label, type(error).__name__)
        finally:
            reporting.cancel()
            if self._changed.is_set():
                self._report()

    async def _report_changes(self) -> None:
        """Report changes of the server's tools. All changes since one report began become one more report."""
        while await self._changed.wait():
            self._changed.clear()
            await asyncio.wait({self._report()})
            await asyncio.sleep(_REPORT_SECONDS)

    def _report(self) -> "asyncio.Future[None]":
        """Report in another thread: the report uses the database, which must not hold up this one."""
        return asyncio.get_running_loop().run_in_executor(None, self._on_change)


@asynccontextmanager
async def _changes_reported(link: ServerLink) -> AsyncIterator[None]:
    """Have a server report changes of its tools during the block. Before 2026-07-28 servers report them unasked."""
    tools = link.session.server_capabilities and link.session.server_capabilities.tools
    if not (link.modern and tools and tools.list_changed):
        yield
        return
    acknowledged = asyncio.Event()
    listening = asyncio.create_task(_listen(link, acknowledged))
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(acknowledged.wait(), _LISTEN_SECONDS)
    yield
    listening.cancel()
    await asyncio.wait({listening})


async def _listen(link: ServerLink, acknowledged: asyncio.Event) -> None:
    with contextlib.suppress(MCPError, RuntimeError, anyio.ClosedResourceError):
        async with listen(link.session, tools_list_changed=True) as changes:
            acknowledged.set()
            async for _ in changes:
                pass  # the session's message handler also gets each change
