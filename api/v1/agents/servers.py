"""An agent's MCP servers in requests, and the check that servers and tools go together."""

import re
from collections.abc import Container, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from api.door.requests import Body, twice
from api.door.urls import outside_url
from api.v1.agents.toolsets import ServerName
from models.database.rows import Db
from models.errors import Invalid
from models.pure.naming import OURS
from models.workspace import toolset

MAX_SERVERS = 20
_OURS = re.compile(OURS + r"[a-z0-9][a-z0-9_-]{0,63}")


def _address(url: str) -> str:
    """Return a server's address. Raises ValueError for an invalid name of a toolset, or a URL that `outside_url` refuses."""
    if url.startswith(OURS):
        if not _OURS.fullmatch(url):
            raise ValueError(f"{url[:80]!r} must be {OURS} and a name of a-z, 0-9, _ and -, of at most 64 characters.")
        return url
    return outside_url(url)


class McpServer(Body):
    """An MCP server, or a toolset of this server's operator."""

    type: Literal["url"]
    name: ServerName
    url: Annotated[
        str,
        StringConstraints(max_length=2048),
        AfterValidator(_address),
        Field(description=f"An https URL, or `{OURS}NAME` for a toolset of this server's operator.", examples=[f"{OURS}billing"]),
    ]


def _apart(servers: list[McpServer] | None) -> list[McpServer] | None:
    """Return the servers. Raises ValueError if a tool's full name, `mcp__SERVER__TOOL`, could belong to two of them."""
    names = [server.name for server in servers or []]
    if same := twice(names):
        raise ValueError(f"two servers are named {same!r}; names must be unique.")
    for name in names:
        if longer := next((other for other in names if other != name and f"{other}__".startswith(f"{name}__")), None):
            raise ValueError(f"mcp__{longer}__* would also name tools of {name!r}; rename one of the two servers.")
    return servers


McpServers = Annotated[list[McpServer], Field(max_length=MAX_SERVERS), AfterValidator(_apart)]


def normal_servers(servers: list[McpServer] | None) -> list[dict[str, Any]]:
    """Return the normal form of an agent's MCP servers."""
    return [server.model_dump() for server in servers or []]


def check_servers(db: Db, agent: Mapping[str, Any], fields: Container[str], *, at: str = "") -> None:
    """Raise Invalid if the agent's tools do not fit its MCP servers, or if a toolset of the operator is unknown.

    `agent` is the agent after the request, `fields` are the request's fields, `at` is their path in the request. Errors name only
    fields of the request. A toolset that the request does not name is not checked again, since it may have been removed meanwhile.
    """
    servers: list[dict[str, Any]] = agent.get("mcp_servers") or []
    names = [server["name"] for server in servers]
    for index, tool in enumerate(agent["tools"]):
        if tool["type"] == "mcp_toolset" and tool["mcp_server_name"] not in names:
            raise _missing(tool["mcp_server_name"], index, names, fields, at)
        if tool["type"] == "custom" and (server := next((n for n in names if tool["name"].startswith(f"mcp__{n}__")), None)):
            field = f"tools.{index}.name" if "tools" in fields else "mcp_servers"
            raise Invalid(at + field, f"the client's tool {tool['name']!r} has a name of the MCP server {server!r}: rename one.")
    if "mcp_servers" in fields:
        _check_known(db, servers, at)


def _missing(server: str, index: int, names: list[str], fields: Container[str], at: str) -> Invalid:
    if "tools" not in fields:
        return Invalid(f"{at}mcp_servers", f"leaves out {server[:80]!r}, which tools.{index} needs: send tools as well.")
    names_in_words = ", ".join(repr(name[:80]) for name in names) or "none"
    return Invalid(f"{at}tools.{index}.mcp_server_name", f"{server[:80]!r} is not among the mcp_servers: {names_in_words}.")


def _check_known(db: Db, servers: list[dict[str, Any]], at: str) -> None:
    for index, server in enumerate(servers):
        if server["url"].startswith(OURS) and not toolset.is_announced(db, server["url"]):
            names_in_words = ", ".join(OURS + name for name in toolset.names(db)) or "none"
            raise Invalid(f"{at}mcp_servers.{index}.url", f"{server['url']} is unknown here. Known addresses: {names_in_words}.")
