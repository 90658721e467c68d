"""What the tools of a session's MCP servers are, for its turn: as kept, or as the server says now where that is too old."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from models.database.transactions import transaction
from models.pure.naming import OURS
from models.settings import settings
from models.workspace import toolset
from models.workspace.toolset import Listed

log = logging.getLogger(__name__)

_TYPES = {"connection": "mcp_connection_failed_error", "authentication": "mcp_authentication_failed_error"}


class ServerAway(Exception):
    """An MCP server does not say what tools it has, and never did: the turn cannot begin yet."""

    def __init__(self, server: str, kind: str, message: str) -> None:
        super().__init__(message)
        self.server = server
        """The agent's name for it."""
        self.type = _TYPES[kind]
        """Of the `session.error`."""
        self.passes = kind == "connection"
        """Whether it may be back in a moment; who is not let in will not be."""


def looked_up(workspace_id: str, agent: Mapping[str, Any], known: Mapping[str, Listed]) -> dict[str, Listed]:
    """The agent's MCP servers with their tools. Asks those whose listing is missing or old; raises ServerAway.

    A server that does not answer keeps the tools that it last told: it may be back when they are called.
    """
    wanted = {server["name"]: server["url"] for server in agent.get("mcp_servers") or ()}
    for name, address in wanted.items():
        if address.startswith(OURS) and name not in known:
            raise ServerAway(name, "connection", f"No worker has announced the toolset {address.removeprefix(OURS)}.")
    old = [name for name, address in wanted.items() if not address.startswith(OURS) and _is_old(known.get(name))]
    if not old:
        return dict(known)
    for name in old:
        _ask(workspace_id, name, wanted[name], known.get(name))
    with transaction(workspace_id) as db:
        return toolset.listed(db, agent)


def _is_old(listed: Listed | None) -> bool:
    return listed is None or listed.age is None or listed.age > settings().mcp_listing_seconds


def _ask(workspace_id: str, name: str, url: str, before: Listed | None) -> None:
    from workers.tools.mcp import servers  # half a second of loading, for who has MCP servers
    from workers.tools.mcp.calling import Unreachable
    from workers.tools.mcp.listing import listing

    try:
        toolset.keep_listing(workspace_id, url, lambda: _off_the_loop(lambda: listing(servers.for_url(url))))
    except Unreachable as error:
        if before is None:
            raise ServerAway(name, error.kind, f"MCP server {name}: {error.message}") from error
        log.warning("MCP server %s: not listed anew (%s)", name, error.kind)
    except Exception as error:
        # Whatever else goes wrong with a server must not leave the turn to its lease.
        log.exception("MCP server %s", name)
        if before is None:
            raise ServerAway(
                name, "connection", f"MCP server {name}: its tools cannot be used ({type(error).__name__})."
            ) from error


def _off_the_loop(ask: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Its result, had in a thread of the system's own where gevent has taken the place of threads: it runs an event loop."""
    from gevent import get_hub
    from gevent.monkey import is_module_patched

    if not is_module_patched("threading"):
        return ask()
    # What is raised in there, gevent prints with its traceback.
    found: list[dict[str, Any]] | Exception = get_hub().threadpool.apply(_tried, (ask,))
    if isinstance(found, Exception):
        raise found
    return found


def _tried(ask: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]] | Exception:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - raised again by who waits
        return error
