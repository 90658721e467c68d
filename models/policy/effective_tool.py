"""The tools that an agent really has: those that its body names, and the known tools of its MCP servers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from models.policy.sub_agent_tools import sub_agent_tools
from models.pure.naming import OURS, full_name, is_reserved, may_be_of
from models.workspace.toolset import ToolListing

Kind = Literal["builtin", "custom", "mcp", "agent"]


@dataclass(frozen=True)
class EffectiveTool:
    """One tool that the model is given."""

    name: str
    """For the model, and in rules."""
    kind: Kind
    """`builtin`: our workers run it. `custom`: the client does, and posts the result. `mcp`: a toolset's, or an MCP server's.
    `agent`: it concerns sub-agents, and needs no worker."""
    policy: Mapping[str, Any] | None
    """Its own or its toolset's permission policy; None if neither has one."""
    description: str | None
    """None for built-in tools, which their runner describes."""
    input_schema: dict[str, Any] | None
    """JSON Schema of an object; None for built-in tools."""
    approval: Mapping[str, Any]
    """How people are asked: the tool's own APPROVAL, or nothing."""
    toolset_approval: Mapping[str, Any] = field(default_factory=dict)
    """How people are asked: its toolset's APPROVAL, or nothing."""
    server: str | None = None
    """The agent's name for its MCP server."""
    address: str | None = None
    """The address of that server, as in `models.workspace.toolset`."""
    answer_seconds: float | None = None
    """How long the client may take for a call, if it runs it; None: as the setting says."""
    entry: Mapping[str, Any] | None = None
    """The tool's entry in `models.workspace.toolset`."""
    enabled: bool = True
    """False for a tool that the agent does not have, of which `configured_tool` returns the configuration."""


def effective_tools(body: Mapping[str, Any], listings: Mapping[str, ToolListing] | None = None) -> list[EffectiveTool]:
    """Return the enabled tools of an agent's body or a session's `agent`, in order. `listings`: its MCP servers' known tools.

    A tool with a reserved name is left out, however it came to be stored. So is a client's tool with the name of a tool for
    sub-agents, if the agent has these.
    """
    own = [_of_agents(entry) for entry in sub_agent_tools(body)]
    names = {tool.name for tool in own}
    configured = (tool for entry in body["tools"] for tool in _tools_of(entry, listings or {}))
    return [tool for tool in configured if not is_reserved(tool.name) and tool.name not in names] + own


def _of_agents(entry: Mapping[str, Any]) -> EffectiveTool:
    description, schema = entry["description"], entry["input_schema"]
    return EffectiveTool(entry["name"], "agent", None, description, schema, approval={}, entry=entry)


def _tools_of(entry: Mapping[str, Any], listings: Mapping[str, ToolListing]) -> Iterator[EffectiveTool]:
    if entry["type"] == "custom":
        yield _tool(entry, "custom")
    elif entry["type"] == "mcp_toolset":
        served = listings.get(entry["mcp_server_name"])
        yield from _served(entry, served) if served else ()
    else:
        default = entry["default_config"].get("approval") or {}
        yield from (_tool(config, "builtin", default) for config in entry["configs"] if config["enabled"])


def _tool(entry: Mapping[str, Any], kind: Kind, toolset_approval: Mapping[str, Any] | None = None) -> EffectiveTool:
    return EffectiveTool(
        name=entry["name"],
        kind=kind,
        policy=_policy(entry),
        description=entry.get("description"),
        input_schema=entry.get("input_schema"),
        approval=entry.get("approval") or {},
        toolset_approval=toolset_approval or {},
        answer_seconds=entry.get("result_timeout_seconds"),
    )


def _served(toolset: Mapping[str, Any], listing: ToolListing) -> Iterator[EffectiveTool]:
    """Yield the tools of an MCP server. Those that the toolset does not name use its `default_config`."""
    server = toolset["mcp_server_name"]
    configs = {config["name"]: config for config in toolset["configs"]}
    default = toolset["default_config"]
    for entry in listing.tools:
        config = configs.get(entry["name"], default)
        if config["enabled"]:
            yield EffectiveTool(
                name=full_name(server, entry["name"]),
                kind="mcp",
                policy=_policy(config),
                description=entry["description"],
                input_schema=entry["input_schema"],
                approval={} if config is default else config.get("approval") or {},
                toolset_approval=default.get("approval") or {},
                server=server,
                address=listing.address,
                entry=entry,
            )


def _policy(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return None if config.get("policy_from") == "default" else config.get("permission_policy")


def configured_tool(body: Mapping[str, Any], name: str) -> EffectiveTool | None:
    """Return the tool of that name as an agent's body configures it, also if it is disabled, or if its server's tools are unknown.

    A disabled tool has a policy only if the body names this very tool. None if the body says nothing of such a tool.
    """
    for entry in body["tools"]:
        if entry["type"] == "custom":
            continue
        of_server = entry["type"] == "mcp_toolset"
        names = {full_name(entry["mcp_server_name"], c["name"]) if of_server else c["name"]: c for c in entry["configs"]}
        default = entry["default_config"]
        config = names.get(name, default if of_server and may_be_of(name, entry["mcp_server_name"]) else None)
        if config is None:
            continue
        is_named = config.get("policy_from") == "tool"
        return EffectiveTool(
            name=name,
            kind="mcp" if of_server else "builtin",
            policy=_policy(config) if config["enabled"] or is_named else None,
            description=None,
            input_schema=None,
            approval={} if config is default else config.get("approval") or {},
            toolset_approval=(default.get("approval") or {}) if config["enabled"] else {},
            enabled=config["enabled"],
        )
    return None


def with_toolset(agent: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the agent with one more of the operator's toolsets, whose tools are always allowed."""
    if any(server["name"] == name for server in agent["mcp_servers"]):
        return agent
    default_config = {"enabled": True, "permission_policy": {"type": "always_allow"}, "policy_from": "toolset"}
    toolset = {"type": "mcp_toolset", "mcp_server_name": name, "default_config": default_config, "configs": []}
    server = {"type": "url", "name": name, "url": OURS + name}
    return {**agent, "mcp_servers": [*agent["mcp_servers"], server], "tools": [*agent["tools"], toolset]}
