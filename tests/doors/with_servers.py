"""Agents with MCP servers, as clients send them."""

from typing import Any

from doors.served import MODEL

GITHUB = {"type": "url", "name": "github", "url": "https://mcp.example.org/github?v=2"}
BILLING = {"type": "url", "name": "billing", "url": "assent:billing"}
BASE = {"name": "A", "model": MODEL}


def of(server: str = "github", **more: Any) -> dict[str, Any]:
    """The toolset of a server."""
    return {"type": "mcp_toolset", "mcp_server_name": server} | more


def both(*tools: dict[str, Any], servers: tuple[dict[str, Any], ...] = (GITHUB,)) -> dict[str, Any]:
    """The two lists that go together."""
    return {"mcp_servers": list(servers), "tools": list(tools) or [of()]}


def custom(name: str) -> dict[str, Any]:
    """A client tool."""
    return {"type": "custom", "name": name, "description": "", "input_schema": {"type": "object"}}


def url(said: str) -> dict[str, Any]:
    """An agent's servers, one of them here."""
    return {"mcp_servers": [GITHUB, {"type": "url", "name": "n", "url": said}]}
