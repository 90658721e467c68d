"""An MCP server with a tool for each thing that one can do: `python server.py stdio` or `python server.py http PORT_FILE [legacy]`.

`legacy` speaks the versions of the protocol before 2026-07-28 only.
"""

import base64
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PIXEL = base64.b64encode(b"\x89PNG").decode()
server = MCPServer("tests")


@server.tool(annotations=types.ToolAnnotations(read_only_hint=True, title="Sum"))
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(annotations=types.ToolAnnotations(idempotent_hint=True))
def note(file: str, ctx: Context) -> str:
    """Writes the call's metadata to a file."""
    meta = ctx.request_context.meta or {}
    with Path(file).open("a") as lines:
        lines.write(json.dumps({key: value for key, value in dict(meta).items() if key.startswith("assent/")}) + "\n")
    return "noted"


@server.tool()
def environment() -> str:
    """Says what the server was given."""
    return json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd()), "pid": os.getpid()})


@server.tool()
async def wait(started: str, until: str, cancelled: str = "") -> str:
    """Works until a file is there."""
    Path(started).write_text(str(os.getpid()))
    try:
        while not Path(until).exists():
            await anyio.sleep(0.005)
    except anyio.get_cancelled_exc_class():
        Path(cancelled).write_text("cancelled")
        raise
    return "waited"


@server.tool()
def die(note: str) -> str:
    """Has its effect and ends without a word."""
    with Path(note).open("a") as lines:
        lines.write("effect\n")
    os._exit(7)


@server.tool()
def refuse() -> str:
    """Fails."""
    raise ToolError("no such luck")


@server.tool()
def long(size: int) -> str:
    """Says much."""
    return "x" * size


@server.tool()
async def chat(ctx: Context) -> str:
    """Tells how far it is."""
    await ctx.report_progress(1, 2, "half")
    await ctx.info("so far so good")
    return "done"


@server.tool(structured_output=False)
def everything() -> list[Any]:
    """Gives one of each kind."""
    blob = types.BlobResourceContents
    return [
        types.TextContent(text="words"),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
        types.ImageContent(data=PIXEL, mime_type="image/tiff"),
        types.AudioContent(data=PIXEL, mime_type="audio/wav"),
        types.ResourceLink(name="log", uri="file:///log", size=12),
        types.EmbeddedResource(resource=types.TextResourceContents(uri="file:///a", text="read me")),
        types.EmbeddedResource(resource=blob(uri="file:///b.pdf", blob=PIXEL, mime_type="application/pdf")),
        types.EmbeddedResource(resource=blob(uri="file:///c", blob=PIXEL, mime_type="application/zip")),
    ]


@server.tool()
def table() -> dict[str, int]:
    """Gives data."""
    return {"rows": 3}


@server.tool()
async def grow(ctx: Context, name: str = "new", until: str = "") -> str:
    """Learns a new tool, and tells of it. It goes on until a file is there, if it is told of one."""
    server.add_tool(lambda: "new", name=name, description="Is new.")
    if ctx.protocol_version == "2026-07-28":
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    while until and not Path(until).exists():
        await anyio.sleep(0.005)
    return "grown"


@server.tool()
async def ask(ctx: Context) -> str | types.InputRequiredResult:
    """Asks two things."""
    if ctx.protocol_version != "2026-07-28":
        return f"asks nothing: {ctx.client_capabilities.elicitation if ctx.client_capabilities else None}"
    if ctx.input_responses:
        answers = {
            key: answer.model_dump(exclude_none=True, include={"action", "content"}) for key, answer in ctx.input_responses.items()
        }
        return json.dumps({"said": answers, "state": ctx.request_state}, sort_keys=True)
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    form = types.ElicitRequestFormParams(message="Which colour?", requested_schema=schema)
    page = types.ElicitRequestURLParams(message="Pay here.", url="https://pay.example/1")
    requests: types.InputRequests = {"form": types.ElicitRequest(params=form), "page": types.ElicitRequest(params=page)}
    return types.InputRequiredResult(input_requests=requests, request_state="asked once")


@server.tool()
async def again(ctx: Context) -> str | types.InputRequiredResult:
    """Wants to be called three times."""
    state = ctx.request_state or ""
    return state if state == "..." else types.InputRequiredResult(request_state=state + ".")


@server.tool()
async def sample(ctx: Context) -> str | types.InputRequiredResult:
    """Wants the client's model."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text="hi"))
    request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=5))
    return types.InputRequiredResult(input_requests={"model": request})


Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Callable[[Any], Awaitable[None]]], Awaitable[None]]


def old(app: App) -> App:
    """The app, to a client that proposes a new version as a server that knows none."""

    async def serve(scope: Scope, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        headers = dict(scope.get("headers") or ())
        if headers.get(b"mcp-protocol-version") == b"2026-07-28":
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Bad Request"})
            return
        await app(scope, receive, send)

    return serve


def serve_http(port_file: Path, legacy: bool) -> None:
    import uvicorn  # slow, and not needed over pipes

    app: Any = server.streamable_http_app()
    config = uvicorn.Config(old(app) if legacy else app, port=0, log_level="warning", timeout_graceful_shutdown=0)
    served = uvicorn.Server(config)
    served.config.load()
    listening = config.bind_socket()
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio sets it only on sockets of its own
    listening.listen()  # before anybody is told of it
    port_file.with_suffix(".part").write_text(str(listening.getsockname()[1]))
    port_file.with_suffix(".part").rename(port_file)
    served.run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        sys.stderr.write("hello from the server\n")
        server.run("stdio")
    else:
        serve_http(Path(sys.argv[2]), "legacy" in sys.argv)
