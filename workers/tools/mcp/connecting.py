"""The protocol's client on a connection to a server, over HTTP or pipes, and what version of the protocol they share.

From version 2026-07-28 on, a server that has a question for a person answers the call with it, and the call comes again with the
answers: that can wait for days. Before, the question comes while the call runs, and somebody must wait on the open connection.
Nobody does here: there we do not say that we take questions (`elicitation`), so that the server does without or says no.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client._probe import negotiate_auto  # the SDK's own way to find the version; its Client hides the session's parts
from mcp.client.session import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from models.settings import settings
from workers.tools.mcp.flights import Flight, current
from workers.tools.mcp.pipes import Pipes, started
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import Unreachable, unreachable
from workers.tools.mcp.watched_http import http_client

log = logging.getLogger(__name__)

_ME = types.Implementation(name="assent", version=version("assent"))
# They tell of addresses with their queries, ids of sessions, and messages with all that is in them.
for _name, _level in {
    "httpx2": logging.WARNING,
    "httpcore2": logging.WARNING,
    "mcp": logging.CRITICAL,
    "client": logging.CRITICAL,
}.items():
    logging.getLogger(_name).setLevel(_level)


@dataclass
class Link:
    """A connection that is open."""

    server: Server
    session: ClientSession
    flight: Flight
    """What is known of requests that are not calls."""
    pipes: Pipes | None
    over: asyncio.Event
    """Set when no answer comes any more over what was open."""
    retire: Callable[[], None] = lambda: None
    """Let nobody else use it."""

    @property
    def modern(self) -> bool:
        """Whether each request stands for itself, and questions can be parked."""
        return self.session.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def is_over(self) -> bool:
        """`over`, as far as can be seen now."""
        return self.over.is_set() or (self.pipes is not None and self.pipes.process.poll() is not None)


def _nothing() -> None:
    pass


@asynccontextmanager
async def connect(server: Server, changed: Callable[[], None] = _nothing) -> AsyncIterator[Link]:
    """A connection; `changed` is told when the server says that its tools have. Errors: Unreachable.

    To be used in a task of its own, whose context it changes. What the block raises comes out in groups of exceptions: let it not.
    """
    flight = Flight()
    current.set(flight)
    failure: Unreachable | None = None
    async with AsyncExitStack() as stack:
        try:
            link = await _open(server, stack, flight, changed)
            with anyio.fail_after(settings().mcp_connect_seconds):
                await negotiate_auto(link.session)
        except (MCPError, RuntimeError, ValidationError, OSError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            failure = unreachable(server, flight, error)
        else:
            yield link
    if failure is not None:
        raise failure


async def _open(server: Server, stack: AsyncExitStack, flight: Flight, changed: Callable[[], None]) -> Link:
    pipes = None
    streams: Any
    if server.url is not None:
        client = await stack.enter_async_context(http_client(server))
        # Events are bounded by the client.
        streams = await stack.enter_async_context(streamable_http_client(server.url, http_client=client, max_sse_event_size=None))
    else:
        pipes, streams = await stack.enter_async_context(started(server))
    session = _Session(_Dispatcher(*streams, piped=pipes is not None, label=server.label), changed)
    await stack.enter_async_context(session)
    return Link(server, session, flight, pipes, pipes.over if pipes else asyncio.Event())


class _Session(ClientSession):
    def __init__(self, dispatcher: "_Dispatcher", changed: Callable[[], None]) -> None:
        super().__init__(
            dispatcher=dispatcher,
            client_info=_ME,
            log_level="info",
            elicitation_callback=_not_now,  # says that we take questions
            logging_callback=self._logged,
            message_handler=self._heard,
        )
        self._changed = changed
        self._flying = dispatcher.flying

    def _build_capabilities(self, version: str) -> types.ClientCapabilities:
        said = super()._build_capabilities(version)
        return said.model_copy(update={"elicitation": None}) if version in HANDSHAKE_PROTOCOL_VERSIONS else said

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed()

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        said = params.data if isinstance(params.data, str) else repr(params.data)
        flight = current.get()
        # Over pipes, and before 2026-07-28, a message does not say of which call it is.
        for one in [flight] if flight in self._flying else list(self._flying):
            one.print("stderr", f"{params.level}: {said}")


async def _not_now(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:  # noqa: ARG001
    return types.ElicitResult(action="cancel")


class _Dispatcher(JSONRPCDispatcher[Any]):
    """Sends calls under the ids of their flights, so that they can be cancelled without forgetting them."""

    def __init__(self, *streams: Any, piped: bool, label: str) -> None:
        super().__init__(*streams)
        self._piped = piped
        self._label = label
        self.flying: list[Flight] = []

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        flight = current.get()
        if flight is None or method != "tools/call":
            said = await super().send_raw_request(method, params, opts, **more)
            return self._well_formed(said) if method == "tools/list" else said
        chosen: CallOptions = {**(opts or {}), "request_id": flight.request_id}
        flight.sent = flight.sent or (self._piped and not self._closed)
        self.flying.append(flight)
        try:
            return await super().send_raw_request(method, params, chosen, **more)
        finally:
            self.flying.remove(flight)

    def _well_formed(self, said: dict[str, Any]) -> dict[str, Any]:
        """A page of tools without those that are none: for one of them the session would refuse all."""
        tools = said.get("tools")
        if not isinstance(tools, list):
            return said
        kept = [tool for tool in map(_usable, tools) if tool is not None]
        if len(kept) < len(tools):
            log.warning("MCP server %s: %d of its tools are left out: they are malformed", self._label, len(tools) - len(kept))
        return {**said, "tools": kept}


def _usable(said: Any) -> dict[str, Any] | None:
    """A tool as every version of the protocol has it; None for what is none."""
    if not isinstance(said, dict) or not isinstance(said.get("name"), str) or not isinstance(said.get("inputSchema"), dict):
        return None
    tool = {**said, "inputSchema": {"type": "object", **said["inputSchema"]}}
    output = tool.pop("outputSchema", None)
    if isinstance(output, dict) and output.get("type") == "object":
        tool["outputSchema"] = output
    return tool if tool["inputSchema"]["type"] == "object" else None
