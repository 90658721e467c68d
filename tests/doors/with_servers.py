"""Requests for agents with MCP servers."""

from typing import Any

from doors.served import MODEL

GITHUB = {"type": "url", "name": "github", "url": "https://mcp.example.org/github?v=2"}
BILLING = {"type": "url", "name": "billing", "url": "assent:billing"}
BASE = {"name": "A", "model": MODEL}


def of(server: str = "github", **more: Any) -> dict[str, Any]:
    """Return the toolset entry of a server."""
    return {"type": "mcp_toolset", "mcp_server_name": server} | more


def both(*tools: dict[str, Any], servers: tuple[dict[str, Any], ...] = (GITHUB,)) -> dict[str, Any]:
    """Return `mcp_servers` and `tools`, which must match."""
    return {"mcp_servers": list(servers), "tools": list(tools) or [of()]}


def custom(name: str) -> dict[str, Any]:
    """Return a client tool."""
    return {"type": "custom", "name": name, "description": "", "input_schema": {"type": "object"}}


def url(address: str) -> dict[str, Any]:
    """Return `mcp_servers` whose second server has this URL."""
    return {"mcp_servers": [GITHUB, {"type": "url", "name": "n", "url": address}]}
