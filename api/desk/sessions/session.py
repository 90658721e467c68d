"""A session's page: its state with what helps, the timeline page by page and live, where its time went, and a box to write in."""

from datetime import datetime
from typing import Any

from flask import Response, request

from api.desk.rendering.markdown import Pen
from api.desk.rendering.threads import ThreadNode
from api.desk.sessions.lanes import Lanes
from api.desk.sessions.naming import agent_name, cost
from api.desk.sessions.remedy import RETRY, remedy_of
from api.desk.sessions.starting import dollars, message
from api.desk.sessions.timeline import Timeline
from api.desk.sessions.times import Place, Times, Window, moment_of
from api.desk.shell.blueprint import action, desk, page
from api.door import pages, parsing
from api.door.errors import Denied
from api.door.framed import FramedPage, query_value
from api.v1.approvals.visible import find_session
from api.v1.events.routes import opened
from models.audit import legal_hold
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import NotFound, Refusal
from models.flow.begin import updates
from models.flow.begin.messages import receive
from models.flow.begin.sessions import archive as archive_session
from models.flow.begin.sessions import archive_thread as archive_one_thread
from models.flow.judge.approvers import awaited_names
from models.flow.lock import lock
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.pure.pricing.prices import dollars_of
from models.pure.state_words import session_state
from models.session.approval.row import Approval
from models.session.event.last_lines import names_of
from models.session.event.log import EventFilter, events_before, seq_at
from models.session.row import Session
from models.session.thread.row import Thread, own_id

PAGE = 100
"""Events of one page."""


@page("/inbox/sessions/<session_id>", "sessions", "own or read")
def conversation(db: Db, person: PersonPrincipal, session_id: str, refusal: Refusal | None = None) -> FramedPage | str:
    """Show the newest events of a session, or those before an event. With a time, go to its line."""
    session = find_session(db, person, session_id)
    if moment := moment_of(query_value("at")):
        return _address_of(db, session, own_id(session.id), moment)
    waiting = Approval.pending(db, session.id)
    names = awaited_names(db, waiting[:1])
    shared = _conversation(db, person, session, own_id(session.id))
    shown_ids = {line.approval_id or (line.call and line.call.approval_id) for line in shared["timeline"].lines}
    held_work = Session.held_work(db, [session])
    starter = session.on_behalf_of or next(iter(session.speakers), None)
    return FramedPage(
        "sessions/session.html",
        title=names_of(db, [session.id])[session.id],
        agent=f"{agent_name(db, session)}, version {session.agent_version}",
        state=session_state(session.status, session.stop_reason, waits=bool(waiting), is_held=session.id in held_work.sessions),
        whom=names[waiting[0].id] if waiting else "the client" if session.waits_for == "client" else "",
        since=waiting[0].created_at if waiting else None,
        started_by=Names.of(db, [f"user:{starter}"])[f"user:{starter}"] if starter else session.starter(db),
        root=ThreadNode.of(db, session),
        own=db.get_one(Thread, session.id, own_id(session.id)),
        cost=cost(session),
        hold=legal_hold.find(db, session.id) if "admin" in person.scopes else None,
        remedy=remedy_of(db, person, session, waiting),
        waiting=waiting,
        elsewhere=[(row, row.path(db)) for row in waiting if row.id not in shown_ids],
        **shared,
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
    if moment := moment_of(query_value("at")):
        return _address_of(db, session, thread_id, moment)
    return FramedPage(
        "sessions/thread.html",
        root=root,
        node=node,
        path=Thread.path_words(db, session.id, thread_id),
        title=names_of(db, [session.id])[session.id],
        **_conversation(db, person, session, thread_id),
        refusal=str(refusal or ""),
    )


def _conversation(db: Db, person: PersonPrincipal, session: Session, thread_id: str) -> dict[str, Any]:
    """Return the values that the pages of a session and of a thread share: a page of the thread's events, and what may be done."""
    before = _number("before") or session.last_seq + 1
    rows, has_earlier = events_before(db, EventFilter(session, thread_id), before, PAGE)
    shown_rows, shown_thread = rows[::-1], db.get_one(Thread, session.id, thread_id)
    timeline = Timeline.of(db, shown_rows, thread_id)
    window = Window.of(shown_thread, _number("turns"))
    place = Place(timeline.lines, _path(session, thread_id), window, before if before <= session.last_seq else None)
    times = Times.of(db, shown_thread, place, clock.now(db))
    return {
        "session": session,
        "shown_thread": thread_id,
        "timeline": timeline,
        "lanes": Lanes.of(times.bars),
        "place": place,
        "times": times,
        "markdown": Pen(),
        "earlier": place.page_before(shown_rows[0].seq) if has_earlier else None,
        "is_newest": place.before is None,
        "decides": "approvals" in person.scopes,
        "may_write": "sessions" in person.scopes and session.status != "terminated",
    }


def _path(session: Session, thread_id: str) -> str:
    return f"/inbox/sessions/{session.id}" + ("" if thread_id == own_id(session.id) else f"/threads/{thread_id}")


def _address_of(db: Db, session: Session, thread_id: str, moment: datetime) -> str:
    """Return the address of the page and line of a time: of the line `line` of the query, or of the first one at or after it."""
    seq = seq_at(db, session, moment)
    before = min(seq + PAGE * 4 // 5, session.last_seq + 1)
    rows, _ = events_before(db, EventFilter(session, thread_id), before, PAGE)
    lines, line_id = Timeline.of(db, rows[::-1], thread_id).lines, query_value("line")
    line = next((line.id for line in lines if line.id == line_id), next((line.id for line in lines if line.seq >= seq), ""))
    window = Window.of(db.get_one(Thread, session.id, thread_id), _number("turns"))
    return f"{Place(lines, _path(session, thread_id), window).page_before(before)}#{line}"


@action("/inbox/sessions/<session_id>/message", "sessions", section="sessions", again=conversation)
def write(db: Db, person: PersonPrincipal, session_id: str) -> str:
    """Send a message."""
    _receive(db, person, session_id, message("Write a message first."))
    return f"/inbox/sessions/{session_id}"


@action("/inbox/sessions/<session_id>/retry", "sessions", section="sessions", again=conversation)
def retry(db: Db, person: PersonPrincipal, session_id: str) -> str:
    """Have a run that failed or reached a limit go on, by a message."""
    _receive(db, person, session_id, {"type": "user.message", "content": [{"type": "text", "text": RETRY}]})
    return f"/inbox/sessions/{session_id}"


@action("/inbox/sessions/<session_id>/budget", "sessions", section="sessions", again=conversation)
def raise_budget(db: Db, person: PersonPrincipal, session_id: str) -> str:
    """Replace the budget. A run that rests at the old one goes on."""
    find_session(db, person, session_id)
    updates.update(lock(db, session_id, person), {"budget": dollars_of(dollars("budget")["amount"])})
    return f"/inbox/sessions/{session_id}"


@action("/inbox/sessions/<session_id>/stop", "sessions", section="sessions", again=conversation)
def stop(db: Db, person: PersonPrincipal, session_id: str) -> str:
    """Stop the run."""
    _receive(db, person, session_id, {"type": "user.interrupt"})
    return f"/inbox/sessions/{session_id}"


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


def _receive(db: Db, person: PersonPrincipal, session_id: str, event: dict[str, Any]) -> None:
    find_session(db, person, session_id)
    receive(lock(db, session_id, person), [event])


def _number(name: str) -> int | None:
    text = query_value(name) or ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else None
