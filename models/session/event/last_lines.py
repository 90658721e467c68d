"""What many sessions began with and what was said last, in one line each, for lists."""

import re
from collections.abc import Sequence

from models.database.rows import Db

MOST = 200
"""Most characters of a line."""
_FIRST = 10
"""Events of a session among which its first message is searched."""
_LAST = 60
"""Events of a session among which its last line is searched, from the newest."""
_MARKS = re.compile(r"\*\*|`|^\s*(?:#+|>|[-*])\s+", re.MULTILINE)
"""Marks of Markdown that say nothing in one line."""


def first_and_last_lines(db: Db, session_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the beginnings of the first message and of the newest message or error of each session.

    Each is in one line, and empty if there is none. Those of an archived session are kept in its row.
    """
    rows = db.rows(_LINES, ids=list(session_ids)) if session_ids else []
    return {session_id: (_one_line(first), _one_line(last)) for session_id, first, last in rows}


def names_of(db: Db, session_ids: Sequence[str]) -> dict[str, str]:
    """Return what lists call each session: its title or, without one, how its first message begins."""
    rows = db.rows(_NAMES, ids=list(session_ids)) if session_ids else []
    return {session_id: (title and title.strip()) or _one_line(first) or UNNAMED for session_id, title, first in rows}


def _one_line(text: str | None) -> str:
    return " ".join(_MARKS.sub("", text or "").split())


_TEXT = f"left(coalesce(body #>> '{{content,0,text}}', body #>> '{{error,message}}', ''), {MOST})"
_FIRST_LINE = f"""
    coalesce((SELECT {_TEXT} FROM event WHERE session_id = session.id AND seq <= {_FIRST}
        AND type = 'user.message' ORDER BY seq LIMIT 1), archived_lines ->> 0)
"""  # noqa: S608 - text of our own
NAME = f"coalesce(nullif(title, ''), {_FIRST_LINE})"
"""SQL for the text of `names_of`, null if there is none."""
_NAMES = f"""
    SELECT id, title, CASE WHEN coalesce(title, '') = '' THEN {_FIRST_LINE} END FROM session WHERE id = ANY(%(ids)s)
"""  # noqa: S608 - text of our own
UNNAMED = "Session without a title"
"""What lists call a session that has neither a title nor a message."""
_LINES = f"""
    SELECT session.id, {_FIRST_LINE},
        coalesce((SELECT {_TEXT} FROM event WHERE session_id = session.id AND seq > session.last_seq - {_LAST}
            AND type IN ('agent.message', 'user.message', 'session.error') ORDER BY seq DESC LIMIT 1), archived_lines ->> 1)
    FROM session WHERE session.id = ANY(%(ids)s)
"""  # noqa: S608 - text of our own
