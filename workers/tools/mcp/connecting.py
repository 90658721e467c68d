"""The SDK's client session over HTTP or over the pipes of a command, in the newest protocol version that both sides speak.

From version 2026-07-28 on, a server that has a question for people responds with the question, and Assent repeats the call
with the answers: that can wait for days. Before that version, the question comes while the call runs, and a worker would have to
wait on the open connection. So there Assent does not offer to take questions (`elicitation`). The SDK's own negotiation (`Client`)
declares the same capabilities in all versions, so Assent sends the older handshake itself.
"""

import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from models import DISTRIBUTION
from models.settings import settings
from workers import leash
from workers.guarded_http import TooLong
from workers.tools.mcp.http_client import http_client
from workers.tools.mcp.links import ServerLink
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import Unreachable, unreachable

log = logging.getLogger(__name__)

FAILURES = (MCPError, ValidationError, RuntimeError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)
"""The exceptions of a request that failed."""

_CLIENT = types.Implementation(name="assent", version=version(DISTRIBUTION))
# These loggers write addresses with their queries, ids of sessions, and whole messages.
for _name in ("httpx2", "httpcore2", "mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


@asynccontextmanager
async def connect(server: Server, on_change: Callable[[], None] = lambda: None) -> AsyncIterator[ServerLink]:
    """Open a connection. Calls `on_change` when the server says that its tools changed. Raises Unreachable.

    Enter and leave in the same task, as the SDK's task groups demand. They also wrap what the block raises: let it raise nothing.
    """
    link = ServerLink(server)
    failure: Unreachable | None = None
    async with AsyncExitStack() as stack:
        try:
            link.session = await _session(link, stack, on_change)
            with anyio.fail_after(settings().mcp_connect_seconds):
                await _negotiate(link.session)
        except (*FAILURES, httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = unreachable(server, link.exchange, error)
        else:
            yield link
    if failure is not None:
        raise failure


async def _negotiate(session: ClientSession) -> None:
    """Adopt the newest version. Raises FAILURES."""
    try:
        await session.discover()
    except FAILURES:
        params = types.InitializeRequestParams(
            protocol_version=LATEST_HANDSHAKE_VERSION, capabilities=types.ClientCapabilities(), client_info=_CLIENT
        )
        try:
            result = await session.send_request(types.InitializeRequest(params=params), types.InitializeResult)
        except MCPError as error:
            if error.code != types.UNSUPPORTED_PROTOCOL_VERSION:
                raise
            await session.discover()  # the server has started by now, and its first response came too late
            return
        if result.protocol_version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise RuntimeError(f"unknown protocol version {result.protocol_version}") from None
        session.adopt(result)
        await session.send_notification(types.InitializedNotification())


async def _session(link: ServerLink, stack: AsyncExitStack, on_change: Callable[[], None]) -> ClientSession:
    async def show_log(params: types.LoggingMessageNotificationParams) -> None:
        message = params.data if isinstance(params.data, str) else repr(params.data)
        link.exchange.show("stderr", f"{params.level}: {message}")

    async def notice_change(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_change()

    session = ClientSession(
        dispatcher=_Dispatcher(link, *await _streams(link, stack)),
        client_info=_CLIENT,
        log_level="info",
        elicitation_callback=_cancel,  # with it, the SDK declares that this client takes questions
        logging_callback=show_log,
        message_handler=notice_change,
    )
    return await stack.enter_async_context(session)


async def _cancel(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001
    return types.ElicitResult(action="cancel")


async def _streams(link: ServerLink, stack: AsyncExitStack) -> tuple[Any, Any]:
    server = link.server
    if server.url is not None:
        client = await stack.enter_async_context(http_client(link))
        # The client limits the size of responses.
        return await stack.enter_async_context(streamable_http_client(server.url, http_client=client, max_sse_event_size=None))
    (program, *arguments), environment = leash.launcher([server.command or "", *server.args])
    parameters = StdioServerParameters(
        command=program, args=arguments, env={**environment, **server.env}, cwd=server.cwd, encoding_error_handler="replace"
    )
    messages, output = await stack.enter_async_context(stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr))
    forwarded, inner = anyio.create_memory_object_stream[Any](0)
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)
    tasks.start_soon(_forward, link, messages, forwarded)
    return inner, output


async def _forward(link: ServerLink, messages: Any, forwarded: Any) -> None:
    """Pass a command's messages on until one is too long or the command closes a pipe: no response comes after that."""
    try:
        async for item in messages:
            if not isinstance(item, Exception):
                if len(item.message.model_dump_json()) > settings().mcp_response_bytes:
                    link.exchange.error = TooLong("the message is too long")
                    return
                await forwarded.send(item)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    finally:
        link.over = True  # set before a waiting request gets the error
        forwarded.close()


class _Dispatcher(JSONRPCDispatcher[Any]):
    """Sends a call under the id of its exchange, so that the call can be cancelled; leaves malformed tools out of listings."""

    def __init__(self, link: ServerLink, *streams: Any) -> None:
        super().__init__(*streams)
        self._link = link

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        if method == "tools/call":
            opts = {**(opts or {}), "request_id": self._link.exchange.request_id}
        result = await super().send_raw_request(method, params, opts, **more)
        if method != "tools/list" or not isinstance(tools := result.get("tools"), list):
            return result
        # The session would refuse the whole page for one malformed tool.
        well_formed = [tool for tool in map(_well_formed, tools) if tool is not None]
        if len(well_formed) < len(tools):
            name, count = self._link.server.label, len(tools) - len(well_formed)
            log.warning("MCP server %s: %d of its tools are left out: they are malformed", name, count)
        return {**result, "tools": well_formed}


def _well_formed(tool: Any) -> dict[str, Any] | None:
    """Return the tool as every version of the protocol describes it; None if it is malformed."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not isinstance(tool.get("inputSchema"), dict):
        return None
    mended = {**tool, "inputSchema": {"type": "object", **tool["inputSchema"]}}
    output = mended.pop("outputSchema", None)
    if isinstance(output, dict) and output.get("type") == "object":
        mended["outputSchema"] = output
    try:
        types.Tool.model_validate(mended, by_name=False)
    except ValidationError:
        return None
    return mended if mended["inputSchema"]["type"] == "object" else None
