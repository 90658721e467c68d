"""An agent's MCP servers as clients send them, and whether servers and tools go together."""

import re
from collections.abc import Container, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from api.requests.base import Body
from api.requests.toolsets import ServerName, twice
from api.requests.urls import outside_url
from models.database.rows import Db
from models.errors import Invalid
from models.pure.naming import OURS
from models.workspace import toolset

MAX_SERVERS = 20
_OURS = re.compile(OURS + r"[a-z0-9][a-z0-9_-]{0,63}")


def _address(url: str) -> str:
    """Where a server is. Raises ValueError if it could be read in two ways, says a secret, or is not to be spoken to."""
    if url.startswith(OURS):
        if not _OURS.fullmatch(url):
            raise ValueError(f"{url[:80]!r} must be {OURS} and a name of a-z, 0-9, _ and -, of at most 64 characters.")
        return url
    return outside_url(url)


class McpServer(Body):
    """An MCP server, or a toolset of the operator's."""

    type: Literal["url"]
    name: ServerName
    url: Annotated[
        str,
        StringConstraints(max_length=2048),
        AfterValidator(_address),
        Field(description=f"An https URL, or `{OURS}NAME` for what this server's operator provides.", examples=[f"{OURS}billing"]),
    ]


def _apart(servers: list[McpServer] | None) -> list[McpServer] | None:
    """The servers. Raises ValueError if a tool's full name, `mcp__SERVER__TOOL`, could be of two of them."""
    names = [server.name for server in servers or []]
    if same := twice(names):
        raise ValueError(f"two servers are named {same!r}; names must be unique.")
    for name in names:
        if longer := next((other for other in names if other != name and f"{other}__".startswith(f"{name}__")), None):
            raise ValueError(f"mcp__{longer}__* would also be tools of {name!r}; name one of them otherwise.")
    return servers


McpServers = Annotated[list[McpServer], Field(max_length=MAX_SERVERS), AfterValidator(_apart)]


def normal_servers(servers: list[McpServer] | None) -> list[dict[str, Any]]:
    """The normal form of an agent's MCP servers."""
    return [server.model_dump() for server in servers or []]


def check_servers(db: Db, agent: Mapping[str, Any], given: Container[str], *, at: str = "") -> None:
    """Raise Invalid if the tools of an agent, as it would be, do not go with its MCP servers, or one of these is not there.

    `given` are the fields that the request has, `at` is where in it they are: what was kept is not named as what is wrong.
    A toolset of the operator's that is gone since is no reason to refuse what does not name it anew.
    """
    servers: list[dict[str, Any]] = agent.get("mcp_servers") or []
    names = [server["name"] for server in servers]
    for index, tool in enumerate(agent["tools"]):
        if tool["type"] == "mcp_toolset" and tool["mcp_server_name"] not in names:
            raise _missing(tool["mcp_server_name"], index, names, given, at)
        if tool["type"] == "custom" and (server := next((n for n in names if tool["name"].startswith(f"mcp__{n}__")), None)):
            field = f"tools.{index}.name" if "tools" in given else "mcp_servers"
            raise Invalid(at + field, f"the client's tool {tool['name']!r} is named like one of the MCP server {server!r}.")
    if "mcp_servers" in given:
        _check_known(db, servers, at)


def _missing(wanted: str, index: int, names: list[str], given: Container[str], at: str) -> Invalid:
    if "tools" not in given:
        return Invalid(f"{at}mcp_servers", f"leaves out {wanted[:80]!r}, whose tools tools.{index} gives: send tools, too.")
    there = ", ".join(repr(name[:80]) for name in names) or "none"
    return Invalid(f"{at}tools.{index}.mcp_server_name", f"{wanted[:80]!r} is not among the mcp_servers: {there}.")


def _check_known(db: Db, servers: list[dict[str, Any]], at: str) -> None:
    for index, server in enumerate(servers):
        if server["url"].startswith(OURS) and not toolset.known(db, server["url"]):
            there = ", ".join(OURS + name for name in toolset.names(db)) or "none"
            raise Invalid(f"{at}mcp_servers.{index}.url", f"{server['url']} is not known here. Those that are: {there}.")
