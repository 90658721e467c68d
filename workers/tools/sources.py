"""Finds the tool of a call: built in, in a Python toolset or MCP server of the operator, or in an MCP server of the client."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from models.pure.naming import OURS
from models.settings import settings
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET
from workers.tools.builtin.branch import GIT_TOOLS
from workers.tools.builtin.results import READ_RESULT
from workers.tools.kinds import Tool
from workers.tools.python import running

log = logging.getLogger(__name__)

WORKER_TOOLSETS: dict[str, tuple[Tool, ...]] = {"git": GIT_TOOLS, "session": (READ_RESULT,)}
"""Toolsets of every tools worker."""

Entry = Mapping[str, Any]
_listeners: list[Callable[[str], None]] = []


def find(name: str, address: str | None, tool: str | None, entry: Entry | None) -> Tool | None:
    """Return the tool of a call; None if this worker has no such tool.

    A built-in tool is found by `name`, another by its toolset's `address` and the name `tool` there. `entry` describes it.
    """
    if address is None or tool is None:
        return AGENT_TOOLSET.get(name)
    if not address.startswith(OURS):
        from workers.tools.mcp import servers

        return _by_mcp(servers.for_url(address), entry)
    toolset = address.removeprefix(OURS)
    if toolset in WORKER_TOOLSETS:
        return next((each for each in WORKER_TOOLSETS[toolset] if each.name == tool), None)
    if entry is None:
        return None
    if toolset in python_toolsets()[0]:
        return running.toolset_tool(toolset, dict(entry))
    return _by_mcp(_servers().get(toolset), entry)


def has(address: str) -> bool:
    """True if this worker has the toolset or MCP server of an `assent:` address."""
    toolset = address.removeprefix(OURS)
    return toolset in WORKER_TOOLSETS or toolset in python_toolsets()[0] or toolset in _servers()


def serves(address: str | None, workspace_id: str) -> bool:
    """True if this worker's settings let a workspace use an address.

    The database hides a limited toolset from other workspaces by the last announcement; this worker's settings may be newer.
    """
    if address is None or not address.startswith(OURS):
        return True
    workspaces = settings().toolset_workspaces.get(address.removeprefix(OURS))
    return workspaces is None or workspace_id in workspaces


def entry_of(address: str | None, tool: str) -> Entry | None:
    """Return the entry of a built-in tool (no address) or of a toolset of this worker; None for tools of MCP servers."""
    if address is None:
        builtin = AGENT_TOOLSET.get(tool)
        return builtin.as_entry if builtin else None
    if not address.startswith(OURS):
        return None
    toolset = address.removeprefix(OURS)
    tools = [each.as_entry for each in WORKER_TOOLSETS.get(toolset, ())] + python_toolsets()[0].get(toolset, [])
    return next((entry for entry in tools if entry["name"] == tool), None)


@cache
def python_toolsets() -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the Python toolsets of this worker, by name, and a sentence for each toolset that cannot be used."""
    return running.describe()


def listen(on_change: Callable[[str], None]) -> None:
    """Call `on_change` in a thread of its own with the address of an MCP server whose tools changed."""
    _listeners[:] = [on_change]


def mcp_entries(address: str) -> list[dict[str, Any]] | None:
    """Return the current entries of an MCP server of the operator; None if the server does not respond."""
    toolset = address.removeprefix(OURS)
    entries = _listing(_servers()[toolset]) if toolset in _servers() else None
    return None if entries is None else [_with_queue(toolset, entry) for entry in entries]


def local_toolsets() -> dict[str, list[dict[str, Any]]]:
    """Return the toolsets that this worker announces without network, each tool with the queue of its workers."""
    own = {name: [tool.as_entry for tool in tools] for name, tools in WORKER_TOOLSETS.items()}
    python = {name: [_with_queue(name, entry) for entry in tools] for name, tools in python_toolsets()[0].items()}
    return own | python


def mcp_toolsets() -> dict[str, list[dict[str, Any]]]:
    """Return the current entries of the operator's MCP servers, by name, without servers that do not respond."""
    entries = {name: mcp_entries(OURS + name) for name in _servers()}
    return {name: tools for name, tools in entries.items() if tools is not None}


def queues() -> list[str]:
    """Return the queues of this worker's toolsets. A tool's own `queue` must be in the worker's command line."""
    return [queue_of(name) for name in (*python_toolsets()[0], *_servers())]


def preload() -> None:
    """Import the MCP client if there are MCP servers. Call it before the pool forks: an import in each process takes 2 s."""
    if _servers():
        from workers.tools.mcp import calling  # noqa: F401


def queue_of(toolset: str) -> str:
    """Return the Celery queue of a toolset."""
    return f"tools.{toolset}"


def _with_queue(toolset: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "queue": entry.get("queue") or queue_of(toolset)}


def _servers() -> Mapping[str, Any]:
    from workers.tools.mcp import servers  # a slow import, and most workers have no MCP servers

    return servers.configured()


def _listing(server: Any) -> list[dict[str, Any]] | None:
    from workers.tools.mcp.calling import Unreachable
    from workers.tools.mcp.listing import listing

    try:
        return listing(server)
    except Unreachable as error:
        log.warning("MCP server %s: %s", server.name, error.message)
    except Exception as error:  # noqa: BLE001 - the other servers still have their tools
        log.error("MCP server %s: its tools cannot be used (%s)", server.name, type(error).__name__)
    return None


def _by_mcp(server: Any, entry: Entry | None) -> Tool | None:
    if server is None or entry is None:
        return None
    from workers.tools.mcp import calling

    return calling.mcp_tool(server, entry, *_listeners)
