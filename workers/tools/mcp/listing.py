"""Lists a server's tools as entries of `models.workspace.toolset`."""

import asyncio
import json
import logging
import re
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from models.pure.json.tool_schema import schema_fault
from models.pure.naming import RESERVED, is_reserved
from models.settings import settings
from workers.tools import clean
from workers.tools.mcp.connecting import connect
from workers.tools.mcp.content import is_storable
from workers.tools.mcp.links import ServerLink
from workers.tools.mcp.servers import Server
from workers.tools.mcp.unreachable import Unreachable, unreachable

log = logging.getLogger(__name__)

_NAME = re.compile(r"[\x21-\x7e]{1,128}")
_MAX_TOOLS = 1000
_MAX_PAGES = 1000
_MAX_BYTES = 2_000_000
"""The limit for all entries together, as JSON."""
_DESCRIPTION_BYTES = 16 * 1024
_TITLE_BYTES = 200
_EXACT = 2**53 - 1
"""The largest integer of canonical JSON. Larger ones become floats."""


class _Unusable(Exception):
    """The tool is left out. The message is the reason."""


def listing(server: Server) -> list[dict[str, Any]]:
    """Return the server's tools, without those that cannot be used, which the log names. Raises Unreachable.

    Opens a connection in an event loop of its own, in any thread that runs none, such as gevent's native threads.
    """
    return _entries(server, asyncio.run(_tools(server)))


async def _tools(server: Server) -> list[types.Tool]:
    async with connect(server) as link:
        tools = await _pages(link)
    if isinstance(tools, Unreachable):
        raise tools  # only here, as the block would wrap the exception
    return tools


async def _pages(link: ServerLink) -> list[types.Tool] | Unreachable:
    tools: list[types.Tool] = []
    cursor: str | None = None
    try:
        with anyio.fail_after(settings().mcp_connect_seconds):
            for _ in range(_MAX_PAGES):
                page = await link.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None or len(tools) > _MAX_TOOLS:
                    break
    except (MCPError, ValidationError, RuntimeError, OSError) as error:
        return unreachable(link.server, link.exchange, error)
    return tools


def _entries(server: Server, tools: list[types.Tool]) -> list[dict[str, Any]]:
    entries: dict[str, dict[str, Any]] = {}
    size = 0
    for tool in tools:
        try:
            if len(entries) >= _MAX_TOOLS:
                raise _Unusable(f"the listing already has {_MAX_TOOLS} tools")
            if tool.name in entries:
                raise _Unusable("the name is taken by an earlier tool")
            entry = _entry(server, tool)
            size += len(json.dumps(entry))
            if size > _MAX_BYTES:
                raise _Unusable(f"the listing already has {_MAX_BYTES} bytes")
        except _Unusable as reason:
            log.warning("MCP server %s: tool %r is left out: %s", server.label, tool.name[:128], reason)
        else:
            entries[tool.name] = entry
    return list(entries.values())


def _entry(server: Server, tool: types.Tool) -> dict[str, Any]:
    if not _NAME.fullmatch(tool.name):
        raise _Unusable("its name must be 1 to 128 visible characters of ASCII")
    if is_reserved(tool.name):
        raise _Unusable(f"its name {RESERVED}")
    hints = tool.annotations or types.ToolAnnotations()
    reads = server.trusted and hints.read_only_hint is True
    annotations = hints.model_dump(by_alias=True, exclude_none=True)
    title = tool.title or hints.title
    return {
        "name": tool.name,
        "title": _line(title) if title else None,
        "description": clean.shorten(clean.escape_controls(tool.description or ""), _DESCRIPTION_BYTES),
        "input_schema": _input_schema(tool.input_schema),
        "output_schema": _output_schema(tool.output_schema),
        "effect": "read" if reads else "write",
        "idempotent": reads or (server.trusted and hints.idempotent_hint is True),
        "seconds": None,
        "prompt": None,
        "cache": None,
        "policy": None,
        "approval": None,
        "queue": None,
        "workdir": False,
        "annotations": {key: _line(value) if isinstance(value, str) else value for key, value in annotations.items()},
    }


def _line(text: str) -> str:
    return clean.shorten(clean.escape_controls(text), _TITLE_BYTES)


def _input_schema(tool_schema: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = _exact(tool_schema)
    if problem := _problem(schema):
        raise _Unusable(f"its input schema {problem}")
    return schema


def _output_schema(tool_schema: dict[str, Any] | None) -> dict[str, Any] | None:
    schema = _exact(tool_schema)
    return None if schema is None or _problem(schema) else schema


def _problem(schema: dict[str, Any]) -> str | None:
    return schema_fault(schema) if is_storable(schema) else "holds characters that cannot be stored, or is too deep"


def _exact(value: Any) -> Any:
    """Return the value, with integers that canonical JSON cannot express as floats."""
    if isinstance(value, dict):
        return {key: _exact(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_exact(part) for part in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return float(value)
    return value
