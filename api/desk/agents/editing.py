"""The form that creates an agent or changes it: name, model, system prompt, and the built-in tools.

Fields of an agent that the form does not show stay as they are, and the page names them.
"""

from collections.abc import Mapping
from typing import Any

from flask import request

from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import Misfilled, needed, text
from api.door.framed import FramedPage
from api.door.parsing import validated
from api.v1.agents.requests import AgentCreate, AgentUpdate
from api.v1.agents.routes import change, make
from models.database.rows import Db
from models.errors import Conflict, Invalid, Refusal
from models.people.principal import PersonPrincipal
from models.workspace.agent import BUILTIN_TOOLS, TOOLSET, Agent

CHOICES = {
    "off": "Off",
    "allow": "Allow every call",
    "ask": "Ask about every call",
    "deny": "Deny every call",
    "default": "As the agent or the workspace says",
}
KEEP = "keep"
"""The tool's own rules, which the form does not show."""
POLICIES = {
    "allow": {"type": "always_allow"},
    "ask": {"type": "always_ask"},
    "deny": {"type": "always_deny"},
}
_AT_FIRST = {"bash": "ask", "edit": "ask", "write": "ask", "read": "allow", "glob": "allow", "grep": "allow"}
_MOST_DIGITS = 9
"""Of a version."""
_UNSEEN = {
    "description": "a description",
    "mcp_servers": "MCP servers and toolsets",
    "multiagent": "sub-agents",
    "permission_policy": "rules of its own",
    "approval": "settings of approvals",
    "max_turns": "the most turns",
    "metadata": "metadata",
    "disable_parallel_tool_use": "one tool per turn",
    "chat_approvals": "approvals by words in a chat",
}


@page("/inbox/agents/new", "agents", "agents")
def new_agent(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form of a new agent. Its model is at first that of the newest agent."""
    newest = db.first(Agent, "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC")
    form = request.form or {"model": newest.at(db).body["model"]["id"] if newest else ""}
    return _form({}, form, _AT_FIRST, refusal)


@action("/inbox/agents/new", "agents", section="agents", again=new_agent)
def create_agent(db: Db, person: PersonPrincipal) -> str:
    """Create an agent, as `POST /v1/agents` does."""
    fields = {"name": _name(), "model": _model(), "tools": _new_tools([], {})}
    if text("system").strip():
        fields["system"] = text("system")
    row, _version = make(db, person, validated(AgentCreate, fields))
    return f"/inbox/agents/{row.id}"


@page("/inbox/agents/<agent_id>/edit", "agents", "agents")
def edit_agent(db: Db, _person: PersonPrincipal, agent_id: str, refusal: Refusal | None = None) -> FramedPage:
    """Show the form with an agent's values."""
    row = Agent.find(db, agent_id)
    if row.archived_at:
        raise Conflict("An archived agent cannot be changed.")
    body = row.at(db).body
    form = request.form or {
        "name": body["name"],
        "model": body["model"]["id"],
        "system": body["system"] or "",
        "version": str(row.version),
    }
    return _form({"id": row.id, **body}, form, _choices(body["tools"]), refusal)


@action("/inbox/agents/<agent_id>/edit", "agents", section="agents", again=edit_agent)
def change_agent(db: Db, person: PersonPrincipal, agent_id: str) -> str:
    """Update an agent, as `POST /v1/agents/{id}` does, with the fields that differ."""
    body = Agent.find(db, agent_id).at(db).body
    fields: dict[str, Any] = {"version": _version()}
    if _name() != body["name"]:
        fields["name"] = _name()
    if _model() != body["model"]["id"]:
        fields["model"] = {**body["model"], "id": _model()}
    if text("system") != (body["system"] or ""):
        fields["system"] = text("system") or None
    present = _choices(body["tools"])
    if any(text(f"tool-{name}") != choice for name, choice in present.items()):
        fields["tools"] = _new_tools(body["tools"], present)
    change(db, person, validated(AgentUpdate, fields), agent_id)
    return f"/inbox/agents/{agent_id}"


def _form(body: Mapping[str, Any], form: Mapping[str, str], present: Mapping[str, str], refusal: Refusal | None) -> FramedPage:
    own_rules = {KEEP: "By its own rules, as now"}
    tools = [
        (name, form.get(f"tool-{name}", present[name]), CHOICES | (own_rules if present[name] == KEEP else {}))
        for name in BUILTIN_TOOLS
    ]
    return FramedPage(
        "agents/edit.html",
        agent_id=body.get("id"),
        title=body.get("name"),
        form=form,
        tools=tools,
        unseen=_unseen(body),
        faults=refusal.faults if isinstance(refusal, Misfilled) else {},
        refusal=str(refusal or ""),
    )


def _unseen(body: Mapping[str, Any]) -> list[str]:
    """Return what the agent has that the form does not show, in words."""
    words = [label for field, label in _UNSEEN.items() if body.get(field)]
    if any(entry["type"] == "custom" for entry in body.get("tools", ())):
        words.append("tools that the client runs")
    if any(value for name, value in body.get("model", {}).items() if name != "id"):
        words.append("further settings of the model")
    return words


def _version() -> int:
    """Return the version that the form was opened with: a later one of somebody else is not overwritten. Raises Invalid."""
    version = text("version")
    if not (version.isascii() and version.isdecimal() and len(version) <= _MOST_DIGITS):
        raise Invalid("", "The form does not say which version of the agent you change. Open the page again.")
    return int(version)


def _name() -> str:
    return needed("name", "Write a name.").strip()


def _model() -> str:
    return needed("model", "Write the name of a model.").strip()


def _toolset(tools: list[dict[str, Any]]) -> dict[str, Any] | None:
    return next((entry for entry in tools if entry["type"] == TOOLSET), None)


def _choices(tools: list[dict[str, Any]]) -> dict[str, str]:
    """Return what the form shows of each built-in tool: a key of CHOICES, or KEEP."""
    toolset = _toolset(tools)
    configs = {config["name"]: config for config in toolset["configs"]} if toolset else {}
    return {name: _choice(configs.get(name)) for name in BUILTIN_TOOLS}


def _choice(config: Mapping[str, Any] | None) -> str:
    if config is None or not config["enabled"]:
        return "off"
    return "default" if config.get("policy_from", "tool") != "tool" else policy_choice(config)


def policy_choice(config: Mapping[str, Any] | None) -> str:
    """Return what a form shows of the policy in a configuration: a key of CHOICES, or KEEP."""
    if config is None or config.get("policy_from", "tool") == "default" or config.get("permission_policy") is None:
        return "default"
    policy = config["permission_policy"]
    if policy == {"type": "auto", "rules": [], "default": "deny"}:
        return "deny"
    return next((name for name, value in POLICIES.items() if value == policy), KEEP)


def _new_tools(tools: list[dict[str, Any]], present: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the agent's tools with what the form says of the built-in ones. What did not change stays as it is."""
    toolset = _toolset(tools)
    configs = {config["name"]: config for config in toolset["configs"]} if toolset else {}
    new = [_config(name, configs.get(name, {"name": name}), present.get(name, "")) for name in BUILTIN_TOOLS]
    default = {"default_config": toolset["default_config"]} if toolset else {"default_config": {"enabled": False}}
    new_toolset = {"type": TOOLSET, **default, "configs": new}
    if toolset is None:
        return [*tools, new_toolset]
    return [new_toolset if entry is toolset else entry for entry in tools]


def _config(name: str, config: Mapping[str, Any], present: str) -> dict[str, Any]:
    choice = text(f"tool-{name}")
    if choice not in CHOICES and choice != KEEP:
        raise Misfilled({f"tool-{name}": f"Choose what happens to calls of {name}."})
    if choice in {present, KEEP}:
        return dict(config)
    if choice == "off":
        return {**config, "enabled": False}
    config_without_policy = {key: value for key, value in config.items() if key not in {"permission_policy", "policy_from"}}
    own = {"permission_policy": POLICIES[choice]} if choice in POLICIES else {}
    return {**config_without_policy, "enabled": True, **own}
