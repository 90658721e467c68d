"""Sessions: the list, and a session's conversation, page by page and live, with a box to write in."""

from collections.abc import Sequence
from typing import Any

from flask import Response, request

from api.desk.rendering.story import Entry, entry
from api.desk.rendering.threads import ThreadNode
from api.desk.shell.blueprint import action, desk, page
from api.desk.shell.forms import Misfilled, needed
from api.door import pages, parsing
from api.door.errors import Denied
from api.door.framed import FramedPage, query_value
from api.door.paging import Selection
from api.door.paging import page as page_of
from api.v1.agents.routes import heads
from api.v1.approvals.visible import find_session, only_own
from api.v1.events.routes import opened
from api.v1.sessions.requests import SessionCreate
from api.v1.sessions.routes import NEWEST, begin
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import NotFound, Refusal
from models.flow.begin.messages import receive
from models.flow.begin.sessions import archive as archive_session
from models.flow.begin.sessions import archive_thread as archive_one_thread
from models.flow.lock import lock
from models.people.principal import PersonPrincipal
from models.pure.state_words import session_state
from models.session.approval.row import Approval
from models.session.event.log import EventFilter, events_before
from models.session.event.row import Event
from models.session.row import Session
from models.session.thread.row import Thread, own_id
from models.session.tool_call.row import ToolCall
from models.workspace.agent import Agent, AgentVersion
from models.workspace.environment import Environment

PAGE = 100
"""Events of one page."""
_SESSIONS = 50
MOST_CHOICES = 100
"""Agents and environments from which a person may choose. A program can name any other."""
_NEWEST = "WHERE archived_at IS NULL ORDER BY created_at DESC, id DESC LIMIT %(most)s"
_LONGEST = 100_000
"""Characters of a message."""


@page("/inbox/sessions", "sessions", "own or read")
def sessions(db: Db, person: PersonPrincipal, refusal: Refusal | None = None) -> FramedPage:
    """Show the sessions that the person may see, newest first, and a form that starts one for people who may."""
    selection = only_own(db, person, Selection(Session), "id", of="session_id")
    rows, after = page_of(db, selection, NEWEST, _SESSIONS, query_value("page"))
    return FramedPage(
        "sessions/sessions.html",
        rows=[(row, agent_name(db, row), session_state(row.status, row.stop_reason)) for row in rows],
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
    return FramedPage(
        "sessions/session.html",
        agent=agent_name(db, session),
        status=session_state(session.status, session.stop_reason),
        root=ThreadNode.of(db, session),
        waiting=[(row, row.path(db)) for row in Approval.pending(db, session.id)],
        **_conversation(db, person, session, own_id(session.id)),
        refusal=str(refusal or ""),
        text=request.form.get("text", ""),
    )


@page("/inbox/sessions/<session_id>/threads/<thread_id>", "sessions", "own or read")
def thread(db: Db, person: PersonPrincipal, session_id: str, thread_id: str, refusal: Refusal | None = None) -> FramedPage | str:
    """Show the conversation of one of a session's agents."""
    session = find_session(db, person, session_id)
    root = ThreadNode.of(db, session)
    node = next((each for each in root.all if each.thread.id == thread_id), None)
    if node is None:
        raise NotFound("thread", thread_id)
    if node is root:
        return f"/inbox/sessions/{session.id}"
    return FramedPage(
        "sessions/thread.html",
        root=root,
        node=node,
        path=Thread.path_words(db, session.id, thread_id),
        **_conversation(db, person, session, thread_id),
        refusal=str(refusal or ""),
    )


def _conversation(db: Db, person: PersonPrincipal, session: Session, thread_id: str) -> dict[str, Any]:
    """Return the values that the pages of a session and of a thread share: a page of the thread's events, and what may be done."""
    before = _number("before", session.last_seq + 1)
    rows, has_earlier = events_before(db, EventFilter(session, thread_id), before, PAGE)
    shown_rows = rows[::-1]
    return {
        "session": session,
        "shown_thread": thread_id,
        "entries": entries(db, shown_rows, thread_id),
        "earlier": shown_rows[0].seq if has_earlier else None,
        "is_newest": before > session.last_seq,
        "may_write": "sessions" in person.scopes and session.status != "terminated",
    }


def entries(db: Db, rows: Sequence[Event], thread_id: str) -> list[Entry]:
    """Return the events of a thread's stream as entries: calls with their present state, those of other threads with their path."""
    waiting = Approval.pending(db, rows[0].session_id) if rows else []
    Thread.read_ahead(db, rows)
    calls = {
        row.id: row for row in db.find(ToolCall, "WHERE id = ANY(%(ids)s)", ids=[row.id for row in rows if "tool_use" in row.type])
    }
    pending = {row.tool_call_id: row.id for row in waiting}
    result = []
    for row in rows:
        state = calls[row.id].status if row.id in calls else ""
        asker = "" if row.thread_id == thread_id else Thread.path_words(db, row.session_id, row.thread_id)
        shown = entry(row.seq, row.shown(whole=False), state=state, approval_id=pending.get(row.id, ""), asker=asker)
        if shown and not (asker and "note" in shown.css):
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


@action("/inbox/sessions/<session_id>/threads/<thread_id>/stop", "sessions", section="sessions", again=thread)
def stop_thread(db: Db, person: PersonPrincipal, session_id: str, thread_id: str) -> str:
    """Stop the run of one thread."""
    _receive(db, person, session_id, {"type": "user.interrupt", "session_thread_id": thread_id})
    return f"/inbox/sessions/{session_id}/threads/{thread_id}"


@action("/inbox/sessions/<session_id>/threads/<thread_id>/archive", "sessions", section="sessions", again=thread)
def archive_thread(db: Db, person: PersonPrincipal, session_id: str, thread_id: str) -> str:
    """Archive one thread."""
    find_session(db, person, session_id)
    locked = next((each for each in lock(db, session_id, person).each if each.thread.id == thread_id), None)
    if locked is None:
        raise NotFound("thread", thread_id)
    archive_one_thread(locked)
    return f"/inbox/sessions/{session_id}/threads/{thread_id}"


@desk.get("/inbox/sessions/<session_id>/stream")
@desk.get("/inbox/sessions/<session_id>/threads/<thread_id>/stream")
def session_stream(session_id: str, thread_id: str | None = None) -> Response:
    """Stream the events of a session, or of one thread, and the text that the agent writes, in the API's format."""
    person = pages.current("own or read")
    if person is None:
        raise Denied(401, "You are signed out.")
    parsing.check_ids({"session_id": session_id, "thread_id": thread_id or own_id(session_id)})
    with transaction(person.workspace_id) as db:
        find_session(db, person, session_id)
        if thread_id and db.get(Thread, session_id, thread_id) is None:
            raise NotFound("thread", thread_id)
    return opened(person, session_id, thread_id)


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


def agent_name(db: Db, session: Session) -> str:
    """Return the name that the session's agent has in this session."""
    return str(AgentVersion.of_session(db, session.agent_id, session.agent_version).snapshot(session.overrides)["name"])
