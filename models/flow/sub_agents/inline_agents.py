"""The agents that a coordinator defines itself. Name, description and prompt are its own; all else is the coordinator's."""

from collections.abc import Collection, Mapping
from typing import Any

from models.errors import Invalid
from models.policy.effective_tool import EffectiveTool, effective_tools
from models.policy.sub_agent_tools import TOOLS
from models.workspace.toolset import ToolListing


def inline_body(agent: Mapping[str, Any], definition: Mapping[str, Any], listings: Mapping[str, ToolListing]) -> dict[str, Any]:
    """Return the body of an agent that `agent` defines. `definition` fits the schema of `send_to_agent`.

    Its tools are those of the names that the definition lists, by default all tools of `agent`, with their policies. Raises Invalid
    with the field for a tool or a model that `agent` does not have.
    """
    body = {name: value for name, value in agent.items() if name not in {"id", "version", "multiagent"}}
    own_fields = {"type": "inline", **{name: definition[name] for name in ("name", "description", "system")}}
    tools = [tool for tool in effective_tools(agent, listings) if tool.name not in TOOLS]
    names = definition.get("tools")
    if names is not None:
        _check_names(names, tools)
        tools = [tool for tool in tools if tool.name in names]
    parts = {"tools": _entries(agent, tools), "model": _model(agent["model"], definition.get("model"))}
    servers = {tool.server for tool in tools}
    return body | own_fields | parts | {"mcp_servers": [server for server in agent["mcp_servers"] if server["name"] in servers]}


def _check_names(names: Collection[str], tools: Collection[EffectiveTool]) -> None:
    names_of_tools = [tool.name for tool in tools]
    if other := next((name for name in names if name not in names_of_tools), None):
        raise Invalid("agent.tools", f"{other!r} is none of your tools: {', '.join(names_of_tools) or 'you have none'}.")


def _model(model: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    if name is None or name == model["id"]:
        return model
    others = list(model.get("fallbacks") or ())
    if name not in others:
        raise Invalid("agent.model", f"{name!r} is none of your models: {', '.join([model['id'], *others])}.")
    return {**model, "id": name, "fallbacks": [other for other in others if other != name]}


def _entries(agent: Mapping[str, Any], tools: Collection[EffectiveTool]) -> list[dict[str, Any]]:
    """Return the entries of the agent's `tools`, cut down to these tools."""
    entries: list[dict[str, Any]] = []
    for entry in agent["tools"]:
        if entry["type"] == "custom":
            entries += [entry] if any(tool.name == entry["name"] for tool in tools if tool.kind == "custom") else []
        elif entry["type"] == "mcp_toolset":
            of_server = [tool for tool in tools if tool.server == entry["mcp_server_name"]]
            entries += [_of_server(entry, of_server)] if of_server else []
        else:
            names = {tool.name for tool in tools if tool.kind == "builtin"}
            configs = [{**config, "enabled": config["enabled"] and config["name"] in names} for config in entry["configs"]]
            entries.append({**entry, "configs": configs})
    return entries


def _of_server(entry: Mapping[str, Any], tools: Collection[EffectiveTool]) -> dict[str, Any]:
    """Return the toolset of a server in which only these tools are enabled, each with the policy that it has now."""
    by_name = {config["name"]: config for config in entry["configs"]}
    default = entry["default_config"]
    plain = {name: value for name, value in default.items() if name != "approval"}
    names = [tool.entry["name"] for tool in tools if tool.entry]
    configs = [by_name.get(name) or {"name": name, **plain} for name in names]
    return {**entry, "default_config": {**default, "enabled": False}, "configs": configs}
