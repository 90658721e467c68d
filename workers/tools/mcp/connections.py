"""Connections that are kept while they are used, in one thread of the process.

A server that is a command runs once per process, for everybody; over HTTP each workspace has a connection of its own, since a
server may keep state for one. A process that was forked has none of its parent's.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from mcp.client.subscriptions import listen
from mcp.shared.exceptions import MCPError

from models.settings import settings
from workers.tools.mcp.connecting import Link, connect
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import Unreachable

log = logging.getLogger(__name__)

T = TypeVar("T")

_LISTEN_SECONDS = 2.0
"""How long the first call of a connection waits until the server tells of changes: else what it changes would be missed."""
_MAX_KEPT = 100
_CLOSE_SECONDS = 20.0
_lock = threading.Lock()
_thread: "_Thread | None" = None
_inherited: list["_Thread"] = []
"""Of parents: kept untouched, as whatever ended them here would end theirs."""


def in_thread(what: Callable[["Connections"], Coroutine[Any, Any, T]]) -> "Future[T]":
    """Run it in the process's thread of connections."""
    thread = _running()
    return asyncio.run_coroutine_threadsafe(what(thread.connections), thread.loop)


def call_in_thread(what: Callable[[], object]) -> None:
    """Likewise, without waiting for it."""
    _running().loop.call_soon_threadsafe(what)


def close_all() -> None:
    """End all connections of this process, and the servers that it started."""
    global _thread
    with _lock:
        thread, _thread = _thread, None
    if thread is not None:
        thread.stop()


def _running() -> "_Thread":
    global _thread  # noqa: PLW0603 - one per process
    with _lock:
        if _thread is None:
            _thread = _Thread()
        return _thread


def _forked() -> None:
    global _thread, _lock  # noqa: PLW0603 - one per process
    _lock = threading.Lock()
    if _thread is not None:
        _inherited.append(_thread)
        _thread = None


os.register_at_fork(after_in_child=_forked)


class _Thread:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.connections = Connections()
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.run_until_complete(self.connections.close())
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


class Connections:
    """By server and workspace. Everything here runs in the thread."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def link(self, server: Server, workspace_id: str, changed: Callable[[], None]) -> AsyncIterator[Link]:
        """A connection, opened if there is none, and in use until the block ends. Errors: Unreachable."""
        key = (server.key, "" if server.url is None else workspace_id)
        connection = self._open.get(key)
        if connection is None or not connection.good:
            self._make_room()
            connection = self._open[key] = _Connection(server, changed, lambda: self._forget(key))
            self._tasks.add(connection.task)
            connection.task.add_done_callback(self._tasks.discard)
        async with connection.use() as link:
            yield link

    def _forget(self, key: tuple[str, str]) -> None:
        if (connection := self._open.get(key)) and not connection.good:
            del self._open[key]

    def _make_room(self) -> None:
        idle = [connection for connection in self._open.values() if not connection.users]
        if len(self._open) >= _MAX_KEPT and idle:
            min(idle, key=lambda connection: connection.used_at).retire()

    async def close(self) -> None:
        for connection in list(self._open.values()):
            connection.retire()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)


class _Connection:
    """One connection, held open by a task of its own until nobody uses it."""

    def __init__(self, server: Server, changed: Callable[[], None], forget: Callable[[], None]) -> None:
        self._server = server
        self._changed = changed
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Link | Unreachable] = self._loop.create_future()
        self._moved = asyncio.Event()
        self._link: Link | None = None
        self._retired = False
        self.users = 0
        self.used_at = self._loop.time()
        self.task = self._loop.create_task(self._hold())

    @property
    def good(self) -> bool:
        """Further calls may use it."""
        return not self._retired and not (self._link and self._link.is_over)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[Link]:
        self.users += 1
        try:
            link = await asyncio.shield(self._opened)
            if isinstance(link, Unreachable):
                raise link
            yield link
        finally:
            self.users -= 1
            self.used_at = self._loop.time()
            self._moved.set()

    def retire(self) -> None:
        """Close it when nobody uses it; until then a new call has a new one."""
        self._retired = True
        self._forget()
        self._moved.set()

    async def _hold(self) -> None:
        try:
            async with connect(self._server, self._changed) as link:
                self._link, link.retire = link, self.retire
                heard = asyncio.Event()
                listening = self._loop.create_task(_listen(link, heard))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(heard.wait(), _LISTEN_SECONDS)
                self._opened.set_result(link)
                await self._until_unused(link)
                self.retire()
                listening.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await listening
        except Unreachable as error:
            self.retire()
            self._opened.set_result(error)
        except Exception as error:  # noqa: BLE001 - the SDK's, in groups; the next call has a new connection
            log.warning("MCP server %s: the connection failed inside: %s", self._server.label, type(error).__name__)
        finally:
            self.retire()
            if not self._opened.done():
                self._opened.set_result(Unreachable("connection", f"{self._server.label} cannot be reached: it failed inside"))

    async def _until_unused(self, link: Link) -> None:
        while True:
            left = self.used_at + settings().mcp_idle_seconds - self._loop.time()
            if not self.users and (not self.good or left <= 0):
                return
            self._moved.clear()
            events = [self._moved] if link.over.is_set() else [self._moved, link.over]
            waits = [self._loop.create_task(event.wait()) for event in events]
            await asyncio.wait(waits, timeout=None if self.users else left, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()


async def _listen(link: Link, heard: asyncio.Event) -> None:
    """Have a server say when its tools change; before 2026-07-28 it does so unasked."""
    tools = link.session.server_capabilities and link.session.server_capabilities.tools
    if not (link.modern and tools and tools.list_changed):
        heard.set()
        return
    with contextlib.suppress(MCPError, RuntimeError, anyio.ClosedResourceError):
        async with listen(link.session, tools_list_changed=True) as changes:
            heard.set()
            async for _ in changes:
                pass  # the session has told of it already
