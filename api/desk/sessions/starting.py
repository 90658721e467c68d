"""The form that starts a session: an agent, a message, an environment, and a budget."""

from decimal import Decimal
from typing import Any

from flask import request

from api.desk.shell.blueprint import action, page
from api.desk.shell.forms import Misfilled, needed, text
from api.door import parsing
from api.door.framed import FramedPage, query_value
from api.v1.agents.routes import heads
from api.v1.sessions.requests import SessionCreate
from api.v1.sessions.routes import begin
from models.database.rows import Db
from models.errors import Refusal
from models.people.principal import PersonPrincipal
from models.pure.pricing.money import monetary
from models.pure.pricing.prices import cents_in, dollars_of
from models.workspace.agent import Agent
from models.workspace.environment import Environment

MOST_CHOICES = 100
"""Agents and environments from which a person may choose. A program can name any other."""
LONGEST = 100_000
"""Characters of a message."""
_NEWEST = "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s"
_MOST_DOLLARS = 1_000_000_000


@page("/inbox/sessions/new", "sessions", "sessions")
def new_session(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the form. The query may name the agent."""
    del person
    return FramedPage(
        "sessions/new.html",
        **_choices(db),
        form=request.form or {"agent": query_value("agent") or ""},
        faults=refusal.faults if isinstance(refusal, Misfilled) else {},
        refusal=str(refusal or ""),
    )


@action("/inbox/sessions/new", "sessions", section="sessions", again=new_session)
def start(db: Db, person: PersonPrincipal) -> str:
    """Create a session with its first message, as `POST /v1/sessions` does."""
    body: dict[str, Any] = {
        "agent": needed("agent", "Choose an agent."),
        "environment_id": needed("environment", "Choose an environment."),
        "initial_events": [message("Write the first message.")],
    }
    if text("budget").strip():
        body["budget"] = {"type": "limit", "max_list_cost": dollars("budget")}
    if text("title").strip():
        body["title"] = text("title").strip()
    session = begin(db, person, parsing.validated(SessionCreate, body))
    return f"/inbox/sessions/{session.id}"


def message(remedy: str) -> dict[str, Any]:
    """Return the message that the form sends. Raises Misfilled with the remedy if there is none."""
    words = needed("text", remedy)
    if len(words) > LONGEST:
        raise Misfilled({"text": f"A message has at most {LONGEST} characters; this one has {len(words)}."})
    return {"type": "user.message", "content": [{"type": "text", "text": words}]}


def dollars(name: str) -> dict[str, str]:
    """Return a field of the form, in dollars, as the API has amounts. Raises Misfilled."""
    try:
        amount = dollars_of(cents_in(text(name)))
    except ValueError:
        amount = Decimal(0)
    if not 0 < amount <= _MOST_DOLLARS:
        raise Misfilled({name: "Write an amount in dollars, such as 2.50."})
    return monetary(amount)


def _choices(db: Db) -> dict[str, list[tuple[str, str]]]:
    """Return the agents and environments that a new session may have, the newest first, each as `(id, name)`."""
    agents = db.find(Agent, _NEWEST, most=MOST_CHOICES)
    versions = heads(db, agents)
    return {"agents": [(row.id, versions[row.id].body["name"]) for row in agents], "environments": environments(db)}


def environments(db: Db) -> list[tuple[str, str]]:
    """Return the environments that a new session may have, the newest first, each as `(id, name)`."""
    return [(row.id, row.name) for row in db.find(Environment, _NEWEST, most=MOST_CHOICES)]
