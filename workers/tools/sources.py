"""Where a call's tool comes from: built in, a Python toolset of the operator's, an MCP server of theirs or of the client's."""

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from models.pure.naming import OURS
from models.settings import settings
from workers.tools import registry
from workers.tools.builtin.branch import GIT_TOOLS
from workers.tools.builtin.results import READ_RESULT
from workers.tools.kinds import Tool
from workers.tools.python import running

log = logging.getLogger(__name__)

OF_THE_HOUSE: dict[str, tuple[Tool, ...]] = {"git": GIT_TOOLS, "session": (READ_RESULT,)}
"""Toolsets that every tools worker has."""

Entry = Mapping[str, Any]
_listeners: list[Callable[[str], None]] = []


def find(name: str, address: str | None, tool: str | None, entry: Entry | None) -> Tool | None:
    """The tool of a call: by `name` if it is built in, else by its toolset's `address` and its own name, as `entry` has it."""
    if address is None or tool is None:
        return registry.look_up(name)
    if not address.startswith(OURS):
        return _served(address, entry)
    toolset = address.removeprefix(OURS)
    if toolset in OF_THE_HOUSE:
        return next((known for known in OF_THE_HOUSE[toolset] if known.name == tool), None)
    if entry is None:
        return None
    return running.toolset_tool(toolset, dict(entry)) if toolset in described()[0] else _configured(toolset, entry)


def has(address: str) -> bool:
    """Whether this worker has what is behind an `assent:` address."""
    toolset = address.removeprefix(OURS)
    return toolset in OF_THE_HOUSE or toolset in described()[0] or toolset in _servers()


def serves(address: str | None, workspace_id: str) -> bool:
    """Whether a workspace may use what is behind an address, by this worker's own settings.

    The database hides a limited toolset from other workspaces, as the last worker announced it; this one may know better.
    """
    if address is None or not address.startswith(OURS):
        return True
    allowed = settings().toolset_workspaces.get(address.removeprefix(OURS))
    return allowed is None or workspace_id in allowed


def entry_of(address: str | None, tool: str) -> Entry | None:
    """The entry of a tool that is built in (no address) or of a toolset that this worker has; None for tools of MCP servers."""
    if address is None:
        builtin = registry.look_up(tool)
        return builtin.described if builtin else None
    if not address.startswith(OURS):
        return None
    toolset = address.removeprefix(OURS)
    tools = [known.described for known in OF_THE_HOUSE.get(toolset, ())] + described()[0].get(toolset, [])
    return next((entry for entry in tools if entry["name"] == tool), None)


@cache
def described() -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """The Python toolsets of this worker, by name, and what is wrong with those that it should have."""
    return running.describe()


def listen(changed: Callable[[str], None]) -> None:
    """Have `changed` called, in a thread of its own, with the address of an MCP server that says that its tools changed."""
    _listeners[:] = [changed]


def listed_anew(address: str) -> list[dict[str, Any]] | None:
    """What an MCP server of the operator's has now; None if it does not say."""
    toolset = address.removeprefix(OURS)
    found = _listing(_servers()[toolset]) if toolset in _servers() else None
    return None if found is None else [_queued(toolset, entry) for entry in found]


def at_hand() -> dict[str, list[dict[str, Any]]]:
    """What this worker announces without asking anybody, each tool with the queue of those that can run it."""
    house = {name: [tool.described for tool in tools] for name, tools in OF_THE_HOUSE.items()}
    python = {name: [_queued(name, entry) for entry in tools] for name, tools in described()[0].items()}
    return house | python


def listed() -> dict[str, list[dict[str, Any]]]:
    """The same of MCP servers, which are asked now. Those that are away are left out."""
    return {name: [_queued(name, entry) for entry in tools] for name, tools in _listed().items()}


def queues() -> list[str]:
    """The queues of the toolsets that this worker has; those that a tool names otherwise are its starter's to name."""
    return [queue_of(name) for name in (*described()[0], *_servers())]


def preload() -> None:
    """Load what the operator's MCP servers take, before the pool's processes are forked: two seconds for each of them else."""
    if _servers():
        from workers.tools.mcp import calling  # noqa: F401


def queue_of(toolset: str) -> str:
    """Where the calls of a toolset wait for workers that have it."""
    return f"tools.{toolset}"


def _queued(toolset: str, entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "queue": entry.get("queue") or queue_of(toolset)}


def _servers() -> Mapping[str, Any]:
    from workers.tools.mcp import servers  # loads slowly, and most workers have no MCP servers

    return servers.configured()


def _listed() -> dict[str, list[dict[str, Any]]]:
    found = {name: _listing(server) for name, server in _servers().items()}
    return {name: tools for name, tools in found.items() if tools is not None}


def _listing(server: Any) -> list[dict[str, Any]] | None:
    from workers.tools.mcp.calling import Unreachable
    from workers.tools.mcp.listing import listing

    try:
        return listing(server)
    except Unreachable as away:
        log.warning("MCP server %s: %s", server.name, away.message)
    except Exception as error:  # noqa: BLE001 - the others have their tools all the same
        log.error("MCP server %s: its tools cannot be used (%s)", server.name, type(error).__name__)
    return None


def _configured(toolset: str, entry: Entry) -> Tool | None:
    server = _servers().get(toolset)
    return _by_mcp(server, entry) if server else None


def _served(url: str, entry: Entry | None) -> Tool | None:
    from workers.tools.mcp import servers

    return _by_mcp(servers.for_url(url), entry) if entry else None


def _by_mcp(server: Any, entry: Entry) -> Tool:
    from workers.tools.mcp import calling

    return calling.mcp_tool(server, entry, *_listeners)
