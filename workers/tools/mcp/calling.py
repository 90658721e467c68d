"""Calls of MCP servers' tools.

A call is sent once. What goes wrong before it was sent is a result like any other: nothing began. After that, without the server's
answer, the outcome is unknown.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from workers.tools.errors import LAPSED, OutcomeUnknown
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.mcp.connecting import Link
from workers.tools.mcp.connections import Connections, call_in_thread, in_thread
from workers.tools.mcp.flights import Flight, current
from workers.tools.mcp.outcomes import Answer, Sent, failed, is_answer, outcome
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import Unreachable
from workers.tools.sandbox import lease_clock

__all__ = ["Unreachable", "mcp_tool", "on_list_changed"]

_LOOK_SECONDS = 0.05
"""How often a cancel is looked for."""
_SLACK_SECONDS = 30.0
"""How much later than it must a call may end."""
_CANCEL_SECONDS = 5.0
"""How long a server may take to answer a call that was cancelled."""
_PAUSE_SECONDS, _PAUSE_MAX_SECONDS = 0.05, 0.25
"""Before a server that asked for nothing but to be called again is."""
_MAX_PAGES = 100
_NOT_FOUND = 404
"""By the protocol before 2026-07-28: the server has forgotten us, say with a restart, and we must begin anew."""
_ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


def _nobody(_address: str) -> None:
    pass


on_list_changed: Callable[[str], None] = _nobody
"""Set by the core: told the address of a server that says that its tools changed. It runs in a thread of its own."""


def mcp_tool(server: Server, entry: Mapping[str, Any]) -> Tool:
    """The tool that a listing's entry describes, to be run by calling the server."""

    def run(context: ToolContext, input: dict[str, Any]) -> ToolResult:  # noqa: A002 - the wire's word
        return _Call(server, entry, context, input).run()

    return Tool.of_entry(entry, run)


class _Call:
    """One call, from any thread."""

    def __init__(self, server: Server, entry: Mapping[str, Any], context: ToolContext, input: dict[str, Any]) -> None:  # noqa: A002
        self._server = server
        self._entry = entry
        self._context = context
        self._input = input
        self._flight = Flight(context.output)
        self._cancelled = asyncio.Event()
        self._link: Link | None = None

    def run(self) -> ToolResult:
        """Errors: OutcomeUnknown."""
        future = in_thread(self._within_time)
        told, deadline = False, time.monotonic() + self._context.seconds + _SLACK_SECONDS
        while not wait([future], _LOOK_SECONDS).done:
            if time.monotonic() > deadline:
                future.cancel()
                raise OutcomeUnknown("the thread that makes calls does not answer")
            if self._context.cancelled.is_set() and not told:
                told = True
                call_in_thread(self._cancelled.set)
        return future.result()

    async def _within_time(self, connections: Connections) -> ToolResult:
        task = asyncio.create_task(self._call(connections))
        cancelled = asyncio.create_task(self._cancelled.wait())
        try:
            await asyncio.wait({task, cancelled}, timeout=self._context.seconds, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and cancelled.done() and await self._ask_to_stop():
                await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
            if task.done():
                return task.result()
        finally:
            cancelled.cancel()
            task.cancel()
            with contextlib.suppress(BaseException):
                await task
        why = "was cancelled" if self._cancelled.is_set() else f"took longer than {self._context.seconds:g} s"
        if self._flight.give_up():
            return failed(self._server, f"the call {why} before it was sent; nothing began")
        raise OutcomeUnknown(f"the call {why}, and {self._server.label} has not said how it ended")

    async def _ask_to_stop(self) -> bool:
        """Say that the call is cancelled; whether an answer may still come. From 2026-07-28 on, over HTTP, hanging up says it."""
        link = self._link
        if link is None or not self._flight.sent or (link.modern and link.pipes is None):
            return False
        self._flight.stopping = True
        params = types.CancelledNotificationParams(request_id=self._flight.request_id, reason="cancelled by the client")
        with anyio.move_on_after(_CANCEL_SECONDS):
            await link.session.send_notification(types.CancelledNotification(params=params))
        return True

    async def _call(self, connections: Connections) -> ToolResult:
        current.set(self._flight)
        try:
            sent = await self._exchange(connections)
            if self._stale(sent):
                self._flight.again(begun=False)
                sent = await self._exchange(connections)
        except Unreachable as error:
            return text_result(f"{error.message}; the call was not sent", is_error=True)
        return outcome(self._server, self._entry, self._flight, sent)

    async def _exchange(self, connections: Connections) -> Sent:
        async with connections.link(self._server, self._context.workspace_id, self._changed) as link:
            self._link = link
            try:
                sent = await self._converse(link)
            except asyncio.CancelledError:
                link.retire()  # and what it started goes on no longer than it must
                if link.pipes is not None:
                    link.pipes.patience = 0
                raise
            if sent.error is not None and not is_answer(self._flight, sent):
                link.retire()
            return sent

    def _stale(self, sent: Sent) -> bool:
        """Whether the connection was of no use any more, so that the server has not begun the call and a new one may carry it."""
        forgotten = sent.link.pipes is None and not sent.link.modern and self._flight.status == _NOT_FOUND
        return sent.error is not None and (forgotten or (sent.link.over.is_set() and not self._flight.sent))

    async def _converse(self, link: Link) -> Sent:
        """Call until there is an answer, or a question that people must answer."""
        if self._context.answers is not None and not link.modern:
            return Sent(link, unanswerable=True)
        answers, state = self._answers()
        pause, listed = _PAUSE_SECONDS, False
        while True:
            sent = await self._send(link, answers, state)
            if isinstance(sent.error, MCPError) and sent.error.code == types.HEADER_MISMATCH and link.modern and not listed:
                # It was rejected unread, since our headers must repeat what the tool's schema marks.
                listed = True
                self._flight.again(begun=False)
                await self._list(link)
                self._flight.again(begun=False)
            elif isinstance(sent.answer, types.InputRequiredResult) and not sent.answer.input_requests:
                self._flight.again(begun=True)
                answers, state = None, sent.answer.request_state
                await asyncio.sleep(pause)
                pause = min(2 * pause, _PAUSE_MAX_SECONDS)
            else:
                return sent

    async def _send(self, link: Link, answers: types.InputResponses | None, state: str | None) -> Sent:
        params = types.CallToolRequestParams(
            name=self._entry["name"],
            arguments=self._input,
            input_responses=answers,
            request_state=state,
            _meta={"assent/call_id": self._context.call_id, "assent/attempt": self._context.attempt},
        )
        try:
            request = types.CallToolRequest(params=params)
            if lease_clock.lapsed():
                raise Unreachable("connection", LAPSED)
            return Sent(link, await link.session.send_request(request, _ANSWER, progress_callback=self._progress))
        except (MCPError, ValidationError, RuntimeError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            return Sent(link, error=error)

    async def _list(self, link: Link) -> None:
        """Have the session know the tool's schema; a failure shows when the call is rejected again."""
        cursor = None
        with contextlib.suppress(MCPError, ValidationError):
            for _ in range(_MAX_PAGES):
                page = await link.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                cursor = page.next_cursor
                if cursor is None or any(tool.name == self._entry["name"] for tool in page.tools):
                    return

    def _answers(self) -> tuple[types.InputResponses | None, str | None]:
        answers = self._context.answers
        if answers is None:
            return None, None
        return {key: types.ElicitResult.model_validate(said) for key, said in answers.by_key.items()} or None, answers.state

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}" + (f"/{total:g}" if total is not None else "")
        self._flight.print("stdout", f"{share} {message or ''}".rstrip())

    def _changed(self) -> None:
        # Whoever hears it may take its time.
        asyncio.get_running_loop().run_in_executor(None, on_list_changed, self._server.address)
