"""Moves old events, replies, inputs and results of sessions at rest into parts of the archive, and removes parts.

A part is made in three steps: a transaction reads the rows and inserts the part's row, the content is stored without one, and a
transaction takes the rows' place, if they are still the same and the part has not been erased meanwhile. A crash between leaves the
rows where they were.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from models.audit.principal import system
from models.database import encryption, ids
from models.database.clock import STARTED
from models.database.exchange import Statement
from models.database.failure import steps_back
from models.database.rows import Db, Stale
from models.database.transactions import transaction
from models.outbox import removal
from models.session.archive import contents
from models.session.archive.part import WRITING, ArchivePart
from models.session.event.last_lines import first_and_last_lines
from models.session.locked import Locked, try_lock
from models.settings import settings
from models.workspace.row import ARCHIVE_AFTER_DAYS

PART_BYTES = 1_000_000
"""Bytes of rows, as JSON, after which a part is closed. The last event of a part may exceed them, with what ended with it."""
MOST_EVENTS = 2_000
"""Most events of a part."""
BATCH = 200
"""Most sessions, and most parts, that a sweep takes."""
CHECKED_PARTS = 20
"""Parts whose contents one sweep checks."""
TASK = "sweep.archive"


@dataclass(frozen=True)
class DueSession:
    """A session that may have events to archive."""

    id: str
    workspace_id: str


def due_sessions() -> list[DueSession]:
    """Return sessions that may have events to archive, at most BATCH; none if this process cannot encrypt."""
    if not encryption.can_encrypt("archive"):
        return []
    with transaction(role="system") as db:
        return [DueSession(*row) for row in db.rows(_DUE, most=BATCH)]


def due_parts() -> list[tuple[str, str, str]]:
    """Return the ids of parts to remove, with their sessions and workspaces, at most BATCH."""
    with transaction(role="system") as db:
        return [(part_id, session_id, workspace_id) for part_id, session_id, workspace_id in db.rows(_GONE, most=BATCH)]


def parts_to_check() -> list[tuple[str, str]]:
    """Return the ids of the parts that were not checked for longest, with their workspaces, at most CHECKED_PARTS."""
    with transaction(role="system") as db:
        return [(part_id, workspace_id) for part_id, workspace_id in db.rows(_TO_CHECK, most=CHECKED_PARTS)]


def archive_next(session: DueSession) -> bool:
    """Archive the next old rows of a session in one part. Returns True if there may be more. Raises ArchiveAway."""
    first_step = begin_part(session)
    if first_step is None:
        return False
    part, lines = first_step
    content = contents.encoded(part, lines)
    contents.store_content(part, content)
    try:
        take_place(part, lines, content)
    except Stale:
        remove_part(part.id, part.session_id, part.workspace_id)
        return False
    return True


def begin_part(session: DueSession) -> tuple[ArchivePart, list[str]] | None:
    """Insert the row of the next part. Returns it with its lines.

    Returns None if there is nothing to archive now. The session's next look is then due later.
    """
    with transaction(session.workspace_id) as db:
        locked = try_lock(db, session.id, system(TASK, session.workspace_id))
        if locked is None:
            return None
        [(days,)] = db.rows(_DAYS)
        if days is None:
            return None
        before = locked.now - timedelta(days=days)
        if not is_at_rest(locked):
            locked.session.archive_from = before + timedelta(days=1)
            return None
        span = _next_span(locked, before)
        if span is None:
            [(oldest,)] = db.rows(_OLDEST, session=session.id, seq=locked.session.archived_through) or [(locked.now,)]
            locked.session.archive_from = oldest
            return None
        lines = _lines(db, span)
        part = ArchivePart(
            id=ids.new("part"),
            workspace_id=session.workspace_id,
            session_id=session.id,
            first_seq=span.first,
            last_seq=span.last,
            after=span.after,
            until=span.until,
            rows=len(lines),
            stored_in="files" if settings().archive_url else "rows",
            created_at=locked.now,
            due_at=locked.now + WRITING,
        )
        db.insert(part)
        return part, lines


def is_at_rest(locked: Locked) -> bool:
    """True if nothing of the session is pending, queued or running, and no message is unread."""
    of_threads = all(thread.status in {"idle", "terminated"} and not thread.unread for thread in locked.threads)
    return of_threads and not locked.db.value(_UNDER_WAY, session=locked.session.id)


@dataclass(frozen=True)
class _Span:
    """The range of a part."""

    session_id: str
    first: int
    last: int
    after: datetime | None
    until: datetime

    @property
    def values(self) -> dict[str, Any]:
        """The values of `_ROWS`."""
        return {
            "session": self.session_id,
            "first": self.first,
            "last": self.last,
            "after": self.after,
            "until": self.until,
        }


def _next_span(locked: Locked, before: datetime) -> _Span | None:
    """Return the range of the next part: events from before this time, up to PART_BYTES of rows. None without such events."""
    db, session = locked.db, locked.session
    parts = ArchivePart.after_event(db, session.id, session.archived_through - 1)
    after = parts[-1].until if parts else None
    events = db.rows(_EVENTS, session=session.id, seq=session.archived_through, most=MOST_EVENTS)
    old = []
    for seq, at, size in events:
        if at >= before:
            break
        old.append((seq, at, size))
    if not old:
        return None
    payloads = db.rows(_SIZES, session=session.id, after=after, until=old[-1][1])
    total, next_payload, last, until = 0, 0, 0, old[0][1]
    for seq, at, size in old:
        total += size
        while next_payload < len(payloads) and payloads[next_payload][0] <= at:
            total += payloads[next_payload][1]
            next_payload += 1
        if last and total > PART_BYTES:
            break
        last, until = seq, at
    return _Span(session.id, old[0][0], last, after, until)


def _lines(db: Db, span: _Span) -> list[str]:
    """Return the rows of a span as lines, always in the same order."""
    results = db.read(*(Statement(sql, span.values) for sql in _ROWS.values()))
    return [line for rows in results for (line,) in rows]


def take_place(part: ArchivePart, lines: list[str], content: bytes) -> None:
    """Let the part take the place of its rows. Raises Stale if the part is gone, or if they changed since they were read."""
    with transaction(part.workspace_id) as db:
        locked = try_lock(db, part.session_id, system(TASK, part.workspace_id))
        present = db.get(ArchivePart, part.id)
        if locked is None or present is None or present.status != "writing" or not is_at_rest(locked):
            raise Stale("the part is gone, or the session is under way")
        span = _Span(part.session_id, part.first_seq, part.last_seq, part.after, part.until)
        if locked.session.archived_through != part.first_seq - 1 or _lines(db, span) != lines:
            raise Stale("the rows have changed")
        db.move(present, "kept", due_at=None, size=len(content), sha256=contents.hash_of(content))
        locked.session.archived_lines = list(first_and_last_lines(db, [part.session_id])[part.session_id])
        for statement in _DELETIONS:
            db.write(statement, **span.values)
        locked.session.archived_through = part.last_seq


def remove_part(part_id: str, session_id: str, workspace_id: str) -> None:
    """Remove the content of a part that is erased, or that nobody stores any more, and then its row. Raises ArchiveAway."""
    with transaction(workspace_id) as db:
        removal.sees(db, session_id)
        part = db.get(ArchivePart, part_id, lock=True)
        if part is None or part.status == "kept":
            return
        if part.status == "writing":
            db.move(part, "gone")
    contents.remove(part)
    with transaction(workspace_id) as db:
        removal.sees(db, session_id)
        db.write("DELETE FROM archive_part WHERE id = %(id)s AND status = 'gone'", id=part_id)


def check_part(part_id: str, workspace_id: str) -> None:
    """Check that a part's content is there and was not altered. The part's row says what is wrong. Raises ArchiveAway."""
    with transaction(workspace_id) as db:
        part = db.get(ArchivePart, part_id)
        if part is None or part.status != "kept":
            return
        db.write("UPDATE archive_part SET checked_at = assent_now() WHERE id = %(id)s", id=part_id)
    contents.check(part)


_DUE = f"""
    SELECT first.id, workspace.id FROM workspace CROSS JOIN LATERAL (
        SELECT session.id, coalesce(archive_from, session.created_at) AS since FROM session
        WHERE session.workspace_id = workspace.id AND NOT {steps_back(TASK, "session.id")}
        AND coalesce(archive_from, session.created_at) < {STARTED} - ({ARCHIVE_AFTER_DAYS}) * interval '1 day'
        ORDER BY coalesce(archive_from, session.created_at) LIMIT %(most)s
    ) first ORDER BY first.since LIMIT %(most)s
"""  # noqa: S608 - text of our own
_GONE = f"""
    SELECT id, session_id, workspace_id FROM archive_part WHERE status <> 'kept' AND due_at <= {STARTED}
    AND NOT {steps_back("remove_parts", "archive_part.id")} ORDER BY due_at LIMIT %(most)s
"""  # noqa: S608 - text of our own
_TO_CHECK = f"""
    SELECT id, workspace_id FROM archive_part WHERE status = 'kept'
    AND coalesce(checked_at, created_at) < {STARTED} - interval '1 day' AND NOT {steps_back("check_parts", "archive_part.id")}
    ORDER BY coalesce(checked_at, created_at) LIMIT %(most)s
"""  # noqa: S608 - text of our own
_DAYS = f"SELECT {ARCHIVE_AFTER_DAYS} FROM workspace WHERE id = current_setting('assent.workspace')"  # noqa: S608
_TURNS = "turn_id = ANY (ARRAY(SELECT id FROM turn WHERE session_id = %(session)s))"
_SETTLED = "status = ANY ('{done,answered,replaced,denied,expired,cancelled,refused}')"  # as `models.pure.states.SETTLED`
_UNDER_WAY = f"""
    SELECT EXISTS (SELECT FROM approval WHERE session_id = %(session)s AND status = 'pending')
        OR EXISTS (SELECT FROM turn WHERE session_id = %(session)s AND status IN ('queued', 'running'))
        OR EXISTS (SELECT FROM tool_call WHERE {_TURNS} AND NOT {_SETTLED})
"""  # noqa: S608 - text of our own
_OLDEST = "SELECT created_at FROM event WHERE session_id = %(session)s AND seq = %(seq)s + 1"
_EVENTS = """
    SELECT seq, created_at, octet_length(body::text) FROM event WHERE session_id = %(session)s AND seq > %(seq)s
    ORDER BY seq LIMIT %(most)s
"""
_CALLS = f"tool_call WHERE {_TURNS} AND settled_at > coalesce(%(after)s::timestamptz, '-infinity') AND settled_at <= %(until)s"
_REPLIED = (
    "turn WHERE session_id = %(session)s AND ended_at > coalesce(%(after)s::timestamptz, '-infinity') AND ended_at <= %(until)s"
)
_SIZES = f"""
    SELECT at, sum(size)::bigint FROM (
        SELECT ended_at AS at, (SELECT octet_length(content::text) FROM reply WHERE turn_id = turn.id) AS size FROM {_REPLIED}
        UNION ALL
        SELECT settled_at, (SELECT octet_length(input::text) FROM call_input WHERE tool_call_id = tool_call.id)
            + (SELECT octet_length(content::text) FROM call_result WHERE tool_call_id = tool_call.id)
            + coalesce((SELECT 2 * octet_length(content) FROM stored_result WHERE tool_call_id = tool_call.id), 0)
        FROM {_CALLS}
    ) sizes WHERE size IS NOT NULL GROUP BY at ORDER BY at
"""  # noqa: S608 - text of our own
_OF = {
    "event": "session_id = %(session)s AND seq BETWEEN %(first)s AND %(last)s",
    "reply": f"turn_id = ANY (ARRAY(SELECT id FROM {_REPLIED}))",  # noqa: S608 - text of our own
    **dict.fromkeys(("call_input", "call_result", "stored_result"), f"tool_call_id = ANY (ARRAY(SELECT id FROM {_CALLS}))"),  # noqa: S608
}
"""The condition on the rows of a span, by table."""
_KEYS = {"event": "seq", "reply": "turn_id"}
_ROWS = {
    table: f"""
        SELECT jsonb_build_object('table', '{table}', 'row', to_jsonb({table}))::text FROM {table} WHERE {condition}
        ORDER BY {_KEYS.get(table, "tool_call_id")}
    """  # noqa: S608 - text of our own
    for table, condition in _OF.items()
}
_DELETIONS = [f"DELETE FROM {table} WHERE {condition}" for table, condition in _OF.items()]  # noqa: S608
