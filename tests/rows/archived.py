"""Sessions with old content, and everything that can be read of them."""

from typing import Any

from rows.stage import Stage, call, say

from models.database.rows import Db
from models.database.transactions import transact, transaction
from models.operate import archiving
from models.session.archive.part import ArchiveContent, ArchivePart
from models.session.event.log import EventFilter, events_after, events_before
from models.session.event.row import OF_ASSENT
from models.session.row import Session
from models.session.thread.row import own_id

DAY = 86_400
MONTH = 31 * DAY


def conversation(stage: Stage, text: str = "A secret plan.") -> str:
    """A session at rest: a call that was edited and allowed, one that was denied, and a last word."""
    session = stage.session(bash="always_ask", max_turns=9)
    stage.message(session, text)
    edited, denied = stage.reply(session, say("I begin."), call(), call(command="false"))
    stage.confirm(session, edited.id, updated_input={"command": "echo 2"})
    stage.confirm(session, denied.id, "deny")
    stage.run_call(stage.get(type(edited), edited.id), "2")
    stage.reply(session, say("Done."))
    return session


def archive(stage: Stage, session_id: str) -> int:
    """Archive all of the session that is old. Returns the number of parts that were made."""
    count = 0
    while archiving.archive_next(archiving.DueSession(session_id, stage.workspace_id)):
        count += 1
    return count


def parts(stage: Stage, session_id: str) -> list[ArchivePart]:
    """The parts of the session."""
    with transaction(stage.workspace_id) as db:
        return db.find(ArchivePart, "WHERE session_id = %(id)s ORDER BY last_seq, created_at", id=session_id)


def stored(stage: Stage, part: ArchivePart) -> bytes | None:
    """The content of a part in the database."""
    with transaction(stage.workspace_id) as db:
        row = db.get(ArchiveContent, part.id)
        return row.content if row else None


def read_back(stage: Stage, session_id: str, thread_id: str = "", *, size: int = 7) -> dict[str, Any]:
    """What lists, filters and histories return, page by page."""

    def wanted(db: Db, **more: Any) -> EventFilter:
        return EventFilter(db.get_one(Session, session_id), thread_id or own_id(session_id), **more)

    def shown(**more: Any) -> list[Any]:
        rows, seq, has_more = [], 0, True
        while has_more:
            page, has_more = transact(stage.workspace_id, lambda db, seq=seq: events_after(db, wanted(db, **more), seq, size))
            rows += page
            seq = page[-1].seq if page else seq
        return [(event.seq, event.shown(whole=True, thread_id=thread_id or None)) for event in rows]

    def shown_backwards() -> list[Any]:
        rows, seq, has_more = [], None, True
        while has_more:
            page, has_more = transact(stage.workspace_id, lambda db, seq=seq: events_before(db, wanted(db), seq, size))
            rows += page
            seq = page[-1].seq if page else seq
        return [(event.seq, event.shown(whole=True, thread_id=thread_id or None)) for event in rows]

    return {
        "all": shown(),
        "backwards": shown_backwards(),
        "without": shown(without=OF_ASSENT),
        "types": shown(types=frozenset({"user.message", "agent.tool_result"})),
        "history": stage.history_of(session_id, thread_id or own_id(session_id)),
    }
