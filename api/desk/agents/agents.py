"""The list of agents: each with its model, tools and policy, and what it did in the last days."""

from dataclasses import dataclass
from datetime import datetime

from api.desk.agents.activity import DAYS, Activity, activity_of
from api.desk.agents.tools import in_words, policies_of
from api.desk.shell.blueprint import page
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.paging import page as page_of
from api.v1.agents.routes import NEWEST, heads
from models.database.rows import Db
from models.people.principal import PersonPrincipal
from models.pure.text.visible import visible
from models.workspace.agent import Agent

_AGENTS = 25
_SHOWN = 6
"""Names of tools that a row has."""


@dataclass(frozen=True)
class AgentLine:
    """One agent of the list."""

    id: str
    name: str
    model: str
    tools: str
    """The names of its tools."""
    policy: str
    activity: Activity
    archived_at: datetime | None


@page("/inbox/agents", "agents", "read")
def agents(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show the agents, newest first, or the archived ones."""
    archived = query_value("show") == "archived"
    selection = Selection(Agent).where(f"archived_at IS {'NOT ' if archived else ''}NULL")
    rows, after = page_of(db, selection, NEWEST, _AGENTS, query_value("page"))
    bodies = {id_: version.body for id_, version in heads(db, rows).items()}
    policies, activity = policies_of(db, bodies), activity_of(db, [row.id for row in rows])
    return FramedPage(
        "agents/agents.html",
        lines=[
            AgentLine(
                id=row.id,
                name=visible(bodies[row.id]["name"]),
                model=bodies[row.id]["model"]["id"],
                tools=_names(list(policies[row.id][0].ruled_tools)),
                policy=in_words(policies[row.id][0]),
                activity=activity[row.id],
                archived_at=row.archived_at,
            )
            for row in rows
        ],
        archived=archived,
        after=after,
        days=DAYS,
        may_change="agents" in person.scopes,
    )


def _names(tools: list[str]) -> str:
    more = f" and {len(tools) - _SHOWN} more" if len(tools) > _SHOWN else ""
    return ", ".join(tools[:_SHOWN]) + more
