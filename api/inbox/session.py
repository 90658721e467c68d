"""Sessions: the list, and a session's conversation, page by page and live, with a box to write in."""

from collections.abc import Sequence
from typing import Any

from flask import Response, request

from api.door import pages, parsing
from api.door.errors import Denied
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.paging import page as page_of
from api.inbox.blueprint import action, inbox, page
from api.inbox.forms import Misfilled, needed
from api.inbox.list import agent_name
from api.inbox.rendering.story import Entry, entry
from api.v1.agents.routes import heads
from api.v1.approvals.visible import find_session, only_own
from api.v1.events.routes import opened
from api.v1.sessions.requests import SessionCreate
from api.v1.sessions.routes import NEWEST, begin
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Refusal
from models.flow.begin.messages import receive
from models.flow.begin.sessions import archive as archive_session
from models.flow.lock import lock
from models.people.principal import PersonPrincipal
from models.session.approval.row import Approval
from models.session.event.row import Event
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.workspace.agent import Agent
from models.workspace.environment import Environment

PAGE = 100
"""Events of one page."""
_SESSIONS = 50
MOST_CHOICES = 100
"""Agents and environments from which a person may choose. A program can name any other."""
_NEWEST = "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s"
_LONGEST = 100_000
"""Characters of a message."""
STATUS = {
    "idle": "rests",
    "running": "works",
    "waiting": "waits",
    "rescheduling": "tries again soon",
    "stopping": "stops",
    "terminated": "archived",
}


@page("/inbox/sessions", "sessions", "own or read")
def sessions(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the sessions that the person may see, newest first, and a form that starts one for people who may."""
    selection = only_own(db, person, Selection(Session), "id", of="session_id")
    rows, after = page_of(db, selection, NEWEST, _SESSIONS, query_value("page"))
    return FramedPage(
        "sessions.html",
        rows=[(row, agent_name(db, row), STATUS[row.status]) for row in rows],
        after=after,
        may_start="sessions" in person.scopes,
        **(_choices(db) if "sessions" in person.scopes else {}),
        form=request.form,
        faults=refusal.faults if isinstance(refusal, Misfilled) else {},
        refusal=str(refusal or ""),
    )


@action("/inbox/sessions", "sessions", section="sessions", again=sessions)
def start(db: Db, person: PersonPrincipal) -> str:
    """Create a session with its first message, as `POST /v1/sessions` does."""
    agent_id = needed("agent", "Choose an agent.")
    environment_id = needed("environment", "Choose an environment.")
    body = {"agent": agent_id, "environment_id": environment_id, "initial_events": [_message("Write the first message.")]}
    session = begin(db, person, parsing.validated(SessionCreate, body))
    return f"/inbox/sessions/{session.id}#end"


@page("/inbox/sessions/<session_id>", "sessions", "own or read")
def conversation(db: Db, person: PersonPrincipal, session_id: str, refusal: Refusal | None = None) -> FramedPage:
    """Show the newest events of a conversation, or those before an event."""
    session = find_session(db, person, session_id)
    before = _number("before", session.last_seq + 1)
    these = "WHERE session_id = %(session)s AND seq < %(before)s ORDER BY seq DESC LIMIT %(most)s"
    rows = db.find(Event, these, session=session.id, before=before, most=PAGE)[::-1]
    waiting = Approval.pending(db, session.id)
    return FramedPage(
        "session.html",
        session=session,
        agent=agent_name(db, session),
        status=STATUS[session.status],
        entries=entries(db, rows, waiting),
        waiting=waiting,
        earlier=rows[0].seq if rows and rows[0].seq > 1 else None,
        is_newest=before > session.last_seq,
        may_write="sessions" in person.scopes and session.status != "terminated",
        refusal=str(refusal or ""),
        text=request.form.get("text", ""),
    )


def entries(db: Db, rows: Sequence[Event], waiting: Sequence[Approval]) -> list[Entry]:
    """Return the events as entries; calls with their present state."""
    calls = {
        row.id: row for row in db.find(ToolCall, "WHERE id = ANY(%(ids)s)", ids=[row.id for row in rows if "tool_use" in row.type])
    }
    pending = {row.tool_call_id: row.id for row in waiting}
    result = []
    for row in rows:
        state = calls[row.id].status if row.id in calls else ""
        if shown := entry(row.seq, row.shown(whole=False), state=state, approval_id=pending.get(row.id, "")):
            result.append(shown)
    return result


@action("/inbox/sessions/<session_id>/message", "sessions", section="sessions", again=conversation)
def write(db: Db, person: PersonPrincipal, session_id: str) -> str:
    """Send a message."""
    _receive(db, person, session_id, _message("Write a message first."))
    return f"/inbox/sessions/{session_id}#end"


@action("/inbox/sessions/<session_id>/stop", "sessions", section="sessions", again=conversation)
def stop(db: Db, person: PersonPrincipal, session_id: str) -> str:
    """Stop the run."""
    _receive(db, person, session_id, {"type": "user.interrupt"})
    return f"/inbox/sessions/{session_id}#end"


@action("/inbox/sessions/<session_id>/archive", "sessions", section="sessions", again=conversation)
def archive(db: Db, person: PersonPrincipal, session_id: str) -> str:
    """Archive the session."""
    find_session(db, person, session_id)
    archive_session(lock(db, session_id, person))
    return f"/inbox/sessions/{session_id}"


@inbox.get("/inbox/sessions/<session_id>/stream")
def session_stream(session_id: str) -> Response:
    """Stream the session's events and the text that the agent writes, in the API's format."""
    person = pages.current("own or read")
    if person is None:
        raise Denied(401, "You are signed out.")
    parsing.check_ids({"session_id": session_id})
    with transaction(person.workspace_id) as db:
        find_session(db, person, session_id)
    return opened(person, session_id)


def _message(remedy: str) -> dict[str, Any]:
    """Return the message that the form sends. Raises Misfilled with the remedy if there is none."""
    message = needed("text", remedy)
    if len(message) > _LONGEST:
        raise Misfilled({"text": f"A message has at most {_LONGEST} characters; this one has {len(message)}."})
    return {"type": "user.message", "content": [{"type": "text", "text": message}]}


def _choices(db: Db) -> dict[str, list[tuple[str, str]]]:
    """Return the agents and environments that a new session may have, the newest first, each as `(id, name)`."""
    agents = db.find(Agent, _NEWEST, most=MOST_CHOICES)
    versions = heads(db, agents)
    environments = [(row.id, row.name) for row in db.find(Environment, _NEWEST, most=MOST_CHOICES)]
    return {"agents": [(row.id, versions[row.id].body["name"]) for row in agents], "environments": environments}


def _receive(db: Db, person: PersonPrincipal, session_id: str, event: dict[str, Any]) -> None:
    find_session(db, person, session_id)
    receive(lock(db, session_id, person), [event])


def _number(name: str, otherwise: int) -> int:
    text = query_value(name) or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else otherwise
