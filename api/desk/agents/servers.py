"""The setting of toolsets and MCP servers: which there are, what tools they have, which agents use them, and with which policy.

The operator configures toolsets; a workspace gives them to its agents. An MCP server is named by an agent alone. So what people add
and change here is a part of an agent, as in `POST /v1/agents/{id}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from flask import request

from api.desk.agents.editing import CHOICES, KEEP, POLICIES, policy_choice
from api.desk.agents.tools import EFFECT_WORDS, TAKES, policies_of
from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import Misfilled, needed, text
from api.door.framed import FramedPage, query_value
from api.door.parsing import validated
from api.v1.agents.requests import AgentUpdate
from api.v1.agents.routes import change, heads
from models.database.rows import Db
from models.errors import NotFound, Refusal
from models.people.principal import PersonPrincipal
from models.pure.naming import OURS, full_name
from models.pure.state_words import StateWord
from models.workspace.agent import Agent, AgentVersion
from models.workspace.toolset import OF_SESSION, SEEN_SECONDS, ToolListing, listings_of

MOST = 200
"""Addresses that are listed, and agents that are looked at: the newest."""
_MOST_POLICIES = 10
"""Agents whose policies stand beside each tool."""
SERVER_CHOICES = {name: label for name, label in CHOICES.items() if name != "off"}
_BY_URL = "url"
_TOOLSETS = f"""
    SELECT %(ours)s || name, jsonb_array_length(tools), seen_at, seen_at < assent_now() - interval '{SEEN_SECONDS} seconds'
    FROM toolset WHERE name <> %(of_session)s ORDER BY name LIMIT %(most)s
"""  # noqa: S608 - a number of our own
_LISTINGS = "SELECT url, jsonb_array_length(tools), listed_at, false FROM listing ORDER BY url LIMIT %(most)s"


@dataclass
class ServerLine:
    """A toolset or MCP server."""

    address: str
    tools: int | None = None
    """The number of its tools; None if nobody has asked for them yet."""
    seen_at: datetime | None = None
    """When a worker last had the toolset, or the server last listed its tools."""
    is_gone: bool = False
    """True for a toolset that no worker has now."""
    uses: "list[Use]" = field(default_factory=list)

    @property
    def title(self) -> str:
        """The toolset's name, or the server's URL."""
        return self.address.removeprefix(OURS)

    @property
    def is_toolset(self) -> bool:
        """True for a toolset of the operator's."""
        return self.address.startswith(OURS)


@dataclass(frozen=True)
class Use:
    """An agent that has a server."""

    agent_id: str
    agent_name: str
    server: str
    """The agent's name for it."""
    choice: str
    """What the toolset's own policy is: a key of `SERVER_CHOICES`, or KEEP."""
    version: int


@dataclass(frozen=True)
class ServerTool:
    """One tool of a server."""

    name: str
    description: str
    takes: str
    is_idempotent: bool
    input_schema: Mapping[str, Any]
    policies: list[tuple[str, StateWord, int]]
    """Of each agent that has the tool: its name, the effect where no rule matches, and the number of rules."""


@page("/inbox/servers", "servers", "read")
def servers(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show the toolsets and the MCP servers."""
    lines = list(_lines(db).values())
    return FramedPage("agents/servers.html", lines=lines, may_change="agents" in person.scopes, most=MOST)


@page("/inbox/servers/tools", "servers", "read")
def server(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show one of them, with its tools, and the agents that have it."""
    address = request.values.get("address", "")
    line = _lines(db).get(address)
    if line is None:
        raise NotFound("server", address[:200])
    agents = db.find(Agent, "WHERE id = ANY(%(ids)s)", ids=[use.agent_id for use in line.uses[:_MOST_POLICIES]])
    bodies = {agent_id: version.body for agent_id, version in heads(db, agents).items()}
    return FramedPage(
        "agents/server.html",
        line=line,
        tools=_tools(db, line, bodies),
        choices=SERVER_CHOICES,
        keep=KEEP,
        most_policies=_MOST_POLICIES,
        may_change="agents" in person.scopes,
        refusal=str(refusal or ""),
    )


@page("/inbox/servers/new", "servers", "agents")
def new_server(db: Db, _person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form that gives a server to an agent."""
    agents = db.find(Agent, "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s", most=MOST)
    names = {agent_id: version.body["name"] for agent_id, version in heads(db, agents).items()}
    return FramedPage(
        "agents/new_server.html",
        agents=[(row.id, names[row.id]) for row in agents],
        toolsets=[line for line in _lines(db).values() if line.is_toolset],
        address=request.form.get("address") or query_value("address") or "",
        by_url=_BY_URL,
        choices=SERVER_CHOICES,
        form=request.form,
        faults=refusal.faults if isinstance(refusal, Misfilled) else {},
        refusal=str(refusal or ""),
    )


@action("/inbox/servers/new", "agents", section="servers", again=new_server)
def add_server(db: Db, person: PersonPrincipal) -> str:
    """Give a server to an agent."""
    row = Agent.find(db, needed("agent", "Choose an agent."))
    address, name = _address(), needed("name", "Write a name, such as billing.").strip()
    body = row.at(db).body
    servers = [*(body.get("mcp_servers") or ()), {"type": "url", "name": name, "url": address}]
    entry = {"type": "mcp_toolset", "mcp_server_name": name, "default_config": _default_config()}
    _save(db, person, row.at(db), servers, [*body["tools"], entry])
    return f"/inbox/agents/{row.id}?show=tools"


@action("/inbox/servers/tools", "agents", section="servers", again=server)
def change_server(db: Db, person: PersonPrincipal) -> str:
    """Change the policy with which an agent has a server, or take the server from it."""
    version = Agent.find(db, text("agent")).at(db)
    name, removes = text("server"), text("change") == "remove"
    if not removes and text("policy") == KEEP:
        return f"/inbox/agents/{version.agent_id}?show=tools"
    mine = [entry for entry in version.body["tools"] if entry.get("mcp_server_name") == name]
    others = [entry for entry in version.body["tools"] if entry.get("mcp_server_name") != name]
    servers = [one for one in version.body.get("mcp_servers") or () if not (removes and one["name"] == name)]
    _save(db, person, version, servers, others if removes else [*others, *map(_with_policy, mine)])
    return f"/inbox/agents/{version.agent_id}?show=tools"


def _save(db: Db, person: PersonPrincipal, version: AgentVersion, servers: list[Any], tools: list[Any]) -> None:
    fields = {"mcp_servers": servers, "tools": tools, "version": version.version}
    change(db, person, validated(AgentUpdate, fields), version.agent_id)


def _address() -> str:
    """Return the address of the form: that of a toolset, or a URL. Raises Misfilled."""
    address = needed("address", "Choose a toolset, or an MCP server by its URL.")
    return needed("url", "Write the https URL of the MCP server.").strip() if address == _BY_URL else address


def _default_config() -> dict[str, Any]:
    """Return the default of the toolset, with the policy that the form chooses. Raises Misfilled."""
    choice = text("policy")
    if choice not in SERVER_CHOICES:
        raise Misfilled({"policy": "Choose what happens to its calls."})
    return {"enabled": True} | ({"permission_policy": POLICIES[choice]} if choice in POLICIES else {})


def _with_policy(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return a toolset with the policy of the form. What its tools have of their own stays."""
    kept_names = {"permission_policy", "policy_from"}
    configs = [
        config if config["policy_from"] == "tool" else {name: value for name, value in config.items() if name not in kept_names}
        for config in entry["configs"]
    ]
    default = {name: value for name, value in entry["default_config"].items() if name not in kept_names}
    return {**entry, "default_config": {**default, **_default_config(), "enabled": default["enabled"]}, "configs": configs}


def _lines(db: Db) -> dict[str, ServerLine]:
    """Return the toolsets and servers by address: first the toolsets."""
    rows = [*db.rows(_TOOLSETS, ours=OURS, of_session=OF_SESSION, most=MOST), *db.rows(_LISTINGS, most=MOST)]
    lines = {row[0]: ServerLine(*row) for row in rows}
    agents = db.find(Agent, "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s", most=MOST)
    for agent_id, version in heads(db, agents).items():
        toolsets = [entry for entry in version.body["tools"] if entry["type"] == "mcp_toolset"]
        configs = {entry["mcp_server_name"]: entry["default_config"] for entry in toolsets}
        for one in version.body.get("mcp_servers") or ():
            choice = policy_choice(configs.get(one["name"]))
            line = lines.setdefault(one["url"], ServerLine(one["url"]))
            line.uses.append(Use(agent_id, version.body["name"], one["name"], choice, version.version))
    return lines


def _tools(db: Db, line: ServerLine, bodies: Mapping[str, Mapping[str, Any]]) -> list[ServerTool]:
    """Return the tools of a server, with the policy of each agent that has it."""
    listing: ToolListing | None = listings_of(db, {"mcp_servers": [{"name": "it", "url": line.address}]}).get("it")
    ruled = {agent_id: policies.ruled_tools for agent_id, (policies, _) in policies_of(db, bodies).items()}
    result = []
    for entry in listing.tools if listing else ():
        policies = []
        for use in line.uses[:_MOST_POLICIES]:
            tool = ruled[use.agent_id].get(full_name(use.server, entry["name"]))
            if tool:
                policies.append((use.agent_name, EFFECT_WORDS[tool.default], len(tool.rules)))
        takes = TAKES.get(str(entry.get("effect")), "not declared")
        texts = entry["name"], entry.get("description") or "", takes
        result.append(ServerTool(*texts, bool(entry.get("idempotent")), entry.get("input_schema") or {}, policies))
    return result
