"""One agent's page: what it is and did, its tools with their policies, and its versions with what each changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from flask import request

from api.desk.agents.activity import DAYS, activity_of
from api.desk.agents.tools import EFFECT_WORDS, in_words, lines, policies_of
from api.desk.rendering.diff import ChangedField, changed_fields
from api.desk.sessions.starting import environments
from api.desk.shell.blueprint import action, page
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.paging import page as page_of
from api.v1.agents.routes import VERSIONS
from models.database.rows import Db
from models.people.principal import PersonPrincipal
from models.pure.json.canonical import canonical
from models.pure.policy import covers
from models.pure.text.visible import visible
from models.workspace.agent import Agent, AgentVersion

_VERSIONS = 20
TABS = {"overview": "Overview", "tools": "Tools", "versions": "Versions"}


@dataclass(frozen=True)
class VersionLine:
    """One version of the agent."""

    number: int
    created_at: datetime
    fields: list[str]
    """The fields in which it differs from the version before."""


@page("/inbox/agents/<agent_id>", "agents", "read")
def agent(db: Db, person: PersonPrincipal, agent_id: str) -> FramedPage:
    """Show one tab of an agent's page."""
    row = Agent.find(db, agent_id)
    head = row.at(db)
    tab = query_value("show") or ""
    tab = tab if tab in TABS else "overview"
    values = {"overview": _overview, "tools": _tools, "versions": _versions}[tab](db, row, head)
    return FramedPage(
        f"agents/{tab}.html",
        agent=row,
        name=visible(head.body["name"]),
        body=head.body,
        tabs=[(label, f"/inbox/agents/{row.id}?show={name}", name == tab) for name, label in TABS.items()],
        may_change="agents" in person.scopes and row.archived_at is None,
        may_start="sessions" in person.scopes and row.archived_at is None,
        **values,
    )


@action("/inbox/agents/<agent_id>/archive", "agents", section="agents")
def archive_agent(db: Db, person: PersonPrincipal, agent_id: str) -> str:
    """Archive the agent, as `POST /v1/agents/{id}/archive` does."""
    Agent.lock(db, agent_id).archive(db, person)
    return f"/inbox/agents/{agent_id}"


def _overview(db: Db, row: Agent, head: AgentVersion) -> dict[str, Any]:
    policies, _ = policies_of(db, {row.id: head.body})[row.id]
    return {
        "policy": in_words(policies),
        "activity": activity_of(db, [row.id])[row.id],
        "days": DAYS,
        "environments": environments(db),
        "servers": [server["name"] for server in head.body.get("mcp_servers") or ()],
    }


def _tools(db: Db, row: Agent, head: AgentVersion) -> dict[str, Any]:
    policies, listings = policies_of(db, {row.id: head.body})[row.id]
    toolsets = [entry for entry in head.body["tools"] if entry["type"] == "mcp_toolset"]
    return {
        "tools": lines(head.body, policies, listings),
        "covers": covers,
        "effects": EFFECT_WORDS,
        "unknown_servers": [entry["mcp_server_name"] for entry in toolsets if entry["mcp_server_name"] not in listings],
    }


def _versions(db: Db, row: Agent, head: AgentVersion) -> dict[str, Any]:
    rows, after = page_of(db, Selection(AgentVersion).equal(agent_id=row.id), VERSIONS, _VERSIONS + 1, query_value("page"))
    older = {each.version: each.body for each in rows}
    page_rows = rows[:_VERSIONS]
    number = request.args.get("version", type=int) or head.version
    version = row.at(db, number)
    before = older.get(number - 1) or (row.at(db, number - 1).body if number > 1 else {})
    changes: list[ChangedField] = changed_fields(_set(before), _set(version.body)) if number > 1 else []
    return {
        "versions": [VersionLine(each.version, each.created_at, _new_fields(older, each)) for each in page_rows],
        "version": version,
        "changes": changes,
        "after": after,
    }


def _set(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are set: in a diff, null is nothing."""
    return {name: value for name, value in body.items() if value is not None}


def _new_fields(bodies: Mapping[int, Mapping[str, Any]], version: AgentVersion) -> list[str]:
    before = bodies.get(version.version - 1)
    if before is None:
        return []
    names = sorted({*before, *version.body})
    return [name for name in names if canonical(before.get(name)) != canonical(version.body.get(name))]
