"""The tools of a session's MCP servers, from the stored listing, or from the server if the listing is too old."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from models.database.transactions import transaction
from models.pure.naming import OURS
from models.settings import settings
from models.workspace import toolset
from models.workspace.toolset import ToolListing

log = logging.getLogger(__name__)

_TYPES = {"connection": "mcp_connection_failed_error", "authentication": "mcp_authentication_failed_error"}


class ServerAway(Exception):
    """An MCP server does not list its tools, and there is no stored listing: the turn cannot begin yet."""

    def __init__(self, server: str, kind: str, message: str) -> None:
        super().__init__(message)
        self.server = server
        """The agent's name for the server."""
        self.type = _TYPES[kind]
        """The type of the `session.error`."""
        self.passes = kind == "connection"
        """True if a retry may help. Missing credentials need an operator."""


def current_listings(workspace_id: str, agent: Mapping[str, Any], listings: Mapping[str, ToolListing]) -> dict[str, ToolListing]:
    """Return the listings of the agent's MCP servers. Asks servers whose listing is missing or old. Raises ServerAway.

    If a server does not respond, its old listing stays in use: the server may be back when a tool is called.
    """
    addresses = {server["name"]: server["url"] for server in agent.get("mcp_servers") or ()}
    for name, address in addresses.items():
        if address.startswith(OURS) and name not in listings:
            raise ServerAway(name, "connection", f"No worker has announced the toolset {address.removeprefix(OURS)}.")
    old = [name for name, address in addresses.items() if not address.startswith(OURS) and _is_old(listings.get(name))]
    if not old:
        return dict(listings)
    for name in old:
        _refresh(workspace_id, name, addresses[name], listings.get(name))
    with transaction(workspace_id) as db:
        return toolset.listings_of(db, agent)


def _is_old(listing: ToolListing | None) -> bool:
    return listing is None or listing.age is None or listing.age > settings().mcp_listing_seconds


def _refresh(workspace_id: str, name: str, url: str, old: ToolListing | None) -> None:
    from workers.tools.mcp import servers  # imports take half a second, and most processes have no MCP servers
    from workers.tools.mcp.calling import Unreachable
    from workers.tools.mcp.listing import listing

    try:
        asked_at = toolset.time_before_listing(workspace_id)
        tools = _in_native_thread(lambda: listing(servers.for_url(url)))
        toolset.keep_listing(workspace_id, url, tools, asked_at)
    except Unreachable as error:
        if old is None:
            raise ServerAway(name, error.kind, f"MCP server {name}: {error.message}") from error
        log.warning("MCP server %s: its listing could not be renewed (%s)", name, error.kind)
    except Exception as error:
        # The turn must end here, and not when its lease does.
        log.exception("MCP server %s", name)
        if old is None:
            message = f"MCP server {name}: its tools cannot be used ({type(error).__name__})."
            raise ServerAway(name, "connection", message) from error


def _in_native_thread(function: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the function's result. Under gevent the function runs in a native thread, because it runs its own event loop."""
    from gevent import get_hub
    from gevent.monkey import is_module_patched

    if not is_module_patched("threading"):
        return function()
    # gevent prints the traceback of an exception in its threads, so the exception comes back as a value.
    result: list[dict[str, Any]] | Exception = get_hub().threadpool.apply(_result, (function,))
    if isinstance(result, Exception):
        raise result
    return result


def _result(function: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]] | Exception:
    try:
        return function()
    except Exception as error:  # noqa: BLE001 - the caller raises it
        return error
