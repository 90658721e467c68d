"""Calls of MCP servers' tools.

A call is sent once. A failure before the call was sent is an error result, as nothing began. A failure after that, without the
server's response, leaves the outcome unknown.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from workers import leash
from workers.tools.kinds import Tool, ToolContext, ToolResult, text_result
from workers.tools.mcp.connecting import FAILURES
from workers.tools.mcp.connections import Connections, in_thread
from workers.tools.mcp.links import Exchange, ServerLink
from workers.tools.mcp.outcomes import ServerResponse, ServerResult, failed, outcome
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import Unreachable
from workers.tools.output import OutcomeUnknown

__all__ = ["Unreachable", "mcp_tool"]

_LOOK_SECONDS = 0.05
"""How often a call looks if it was cancelled."""
_SLACK_SECONDS = 60.0
"""How long a call may take beyond its own time limit, to cancel and to close."""
_CANCEL_SECONDS = 5.0
"""How long a server may take to respond to a call that was cancelled."""
_PAUSE_SECONDS, _PAUSE_MAX_SECONDS = 0.05, 0.25
"""The first and the longest wait before a call is repeated because the server asked for that, without a question for people."""
_MAX_PAGES = 100
_NOT_FOUND = 404
"""Before version 2026-07-28: the server has forgotten the connection's session, for example because it restarted."""
_RESULT: TypeAdapter[ServerResult] = TypeAdapter(ServerResult)

Listener = Callable[[str], object]
"""Called in a thread of its own, with the address of a server that says that its tools changed."""


def mcp_tool(server: Server, entry: Mapping[str, Any], *listeners: Listener) -> Tool:
    """Return the tool that a listing's entry describes. Each run calls the server. Changes of its tools go to `listeners`."""

    def run(context: ToolContext, input: dict[str, Any]) -> ToolResult:  # noqa: A002 - the wire's word
        future = in_thread(_Call(server, entry, context, input, listeners).run)
        try:
            return future.result(context.seconds + _SLACK_SECONDS)
        except TimeoutError:
            future.cancel()
            raise OutcomeUnknown("the thread that makes calls does not respond") from None

    return Tool.of_entry(entry, run)


class _Call:
    """One call, in the thread of connections."""

    def __init__(
        self,
        server: Server,
        entry: Mapping[str, Any],
        context: ToolContext,
        input: dict[str, Any],  # noqa: A002 - the wire's word
        listeners: tuple[Listener, ...],
    ) -> None:
        self._server = server
        self._entry = entry
        self._context = context
        self._input = input
        self._listeners = listeners
        self._link: ServerLink | None = None
        self._exchange = Exchange()
        self._stopping = False

    async def run(self, connections: Connections) -> ToolResult:
        """Call within the time limit, unless cancelled. Raises OutcomeUnknown."""
        call = asyncio.create_task(self._call(connections))
        cancelled = asyncio.create_task(self._cancelled())
        await asyncio.wait({call, cancelled}, timeout=self._context.seconds, return_when=asyncio.FIRST_COMPLETED)
        cancelled.cancel()
        if not call.done():
            await self._stop(call)
        call.cancel()
        await asyncio.wait({call})  # its end closes the connection: from now on nothing more is sent
        if not call.cancelled():
            return call.result()
        if not self._exchange.may_have_arrived:
            return failed(self._server, f"the call {self._why} before it was sent; nothing began")
        raise self._unknown()

    @property
    def _why(self) -> str:
        return "was cancelled" if self._context.cancelled.is_set() else f"took longer than {self._context.seconds:g} s"

    def _unknown(self) -> OutcomeUnknown:
        return OutcomeUnknown(f"the call {self._why}, and {self._server.label} has not responded")

    async def _cancelled(self) -> None:
        while not self._context.cancelled.is_set():
            await asyncio.sleep(_LOOK_SECONDS)

    async def _stop(self, call: "asyncio.Task[ToolResult]") -> None:
        """Tell the server that the call is cancelled, and wait a little: the server may still say how the call ended.

        From 2026-07-28 on, over HTTP, the end of the connection cancels the call.
        """
        link = self._link
        if link is None or not self._exchange.may_have_arrived or (link.modern and self._server.url is not None):
            return
        self._stopping = True
        params = types.CancelledNotificationParams(request_id=self._exchange.request_id, reason="cancelled by the client")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await link.session.send_notification(types.CancelledNotification(params=params))
                await asyncio.wait({call})

    async def _call(self, connections: Connections) -> ToolResult:
        try:
            reply = await self._attempt(connections, new=False)
            if self._is_stale(reply):
                reply = await self._attempt(connections, new=True)
        except Unreachable as error:
            return text_result(f"{error.message}; the call was not sent", is_error=True)
        if self._stopping and reply.error is not None:
            raise self._unknown()  # the error says that the server stopped, and not what it had done until then
        return outcome(self._server, self._entry, reply)

    async def _attempt(self, connections: Connections, *, new: bool) -> ServerResponse:
        async with connections.link(self._server, self._context.workspace_id, self._report_change, new=new) as link:
            self._link = link
            reply = await self._converse(link)
            link.broken = reply.error is not None and not reply.is_final
            return reply

    def _is_stale(self, reply: ServerResponse) -> bool:
        """True if the connection was lost before the call, so that the server has not begun and a new connection may carry it."""
        if reply.error is None or self._stopping:
            return False
        forgotten = self._server.url is not None and not reply.link.modern and self._exchange.status == _NOT_FOUND
        return forgotten or (reply.link.over and not self._exchange.may_have_arrived)

    async def _converse(self, link: ServerLink) -> ServerResponse:
        """Call until the server responds, or asks a question for people."""
        answers = self._context.answers
        if answers is not None and not link.modern:
            return ServerResponse(link, self._exchange, unanswerable=True)
        responses: types.InputResponses | None = None
        state: str | None = None
        if answers is not None:
            responses = {key: types.ElicitResult.model_validate(answer) for key, answer in answers.by_key.items()}
            state = answers.state
        pause, may_have_begun, has_schema = _PAUSE_SECONDS, False, False
        while True:
            reply = await self._send(link, responses or None, state, may_have_begun=may_have_begun)
            if isinstance(reply.error, MCPError) and reply.error.code == types.HEADER_MISMATCH and link.modern and not has_schema:
                # The server rejected the call unread: our headers must repeat the fields that the tool's schema marks.
                has_schema = True
                await self._list(link)
            elif isinstance(reply.result, types.InputRequiredResult) and not reply.result.input_requests:
                may_have_begun, responses, state = True, None, reply.result.request_state
                await asyncio.sleep(pause)
                pause = min(2 * pause, _PAUSE_MAX_SECONDS)
            else:
                return reply

    async def _send(
        self, link: ServerLink, responses: types.InputResponses | None, state: str | None, *, may_have_begun: bool
    ) -> ServerResponse:
        """Send one request. `may_have_begun`: an earlier request of this call has reached the server."""
        self._exchange = link.exchange = Exchange(self._context.output, may_have_arrived=may_have_begun)
        params = types.CallToolRequestParams(
            name=self._entry["name"],
            arguments=self._input,
            input_responses=responses,
            request_state=state,
            _meta={"assent/call_id": self._context.call_id, "assent/attempt": self._context.attempt},
        )
        if leash.lapsed():
            raise Unreachable("connection", leash.LAPSED)
        if self._server.url is None:
            self._exchange.may_have_arrived = may_have_begun or not link.over
        try:
            request = types.CallToolRequest(params=params)
            result = await link.session.send_request(request, _RESULT, progress_callback=self._show_progress)
            return ServerResponse(link, self._exchange, result)
        except FAILURES as error:
            return ServerResponse(link, self._exchange, error=error)

    async def _list(self, link: ServerLink) -> None:
        """Have the session read the tool's schema. If that fails, the server rejects the call again."""
        link.exchange = Exchange()
        cursor = None
        with contextlib.suppress(MCPError, ValidationError):
            for _ in range(_MAX_PAGES):
                page = await link.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                cursor = page.next_cursor
                if cursor is None or any(tool.name == self._entry["name"] for tool in page.tools):
                    return

    async def _show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        share = f"{progress:g}" + (f"/{total:g}" if total is not None else "")
        self._exchange.show("stdout", f"{share} {message or ''}".rstrip())

    def _report_change(self) -> None:
        for listener in self._listeners:
            listener(self._server.address)
