"""Where the time of a whole thread went, from its rows, whatever page of its timeline is shown: the requests to the model, the
attempts of calls, the waits for people; and the files that its calls have changed.

Rows of turns, calls and approvals stay where they are when a session is archived, and an index leads to those of a thread. The
names of files go to the archive with the inputs of calls.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from api.desk.sessions.lines import Bar, Line, short
from models.briefing.tool_name import tool_in_words
from models.database.rows import Db
from models.people.names import Names
from models.pure.text.visible import visible
from models.session.approval.columns import is_by_person
from models.session.row import Session

MOST_TURNS = 2_000
"""Requests to the model, the newest, whose time is drawn. A session of 10,000 events has fewer."""
MOST_WAITS = 2_000
MOST_FILES = 100


@dataclass(frozen=True)
class Place:
    """The page of a timeline that is shown, and the address of the thread's page."""

    lines: list[Line]
    address: str

    @cached_property
    def _line_ids(self) -> frozenset[str]:
        return frozenset(line.id for line in self.lines)

    @cached_property
    def _moments(self) -> list[datetime]:
        return [line.at for line in self.lines]

    def link(self, moment: datetime, line_id: str = "") -> str:
        """Return the address of a line or, without one on this page, of the first line at or after a time."""
        if line_id in self._line_ids:
            return f"#{line_id}"
        if self.lines and self.lines[0].at <= moment <= self.lines[-1].at:
            return f"#{self.lines[bisect_left(self._moments, moment)].id}"
        return f"{self.address}?at={round(moment.timestamp() * 1000)}" + (f"&line={line_id}" if line_id else "")


@dataclass(frozen=True)
class Times:
    """The bars of a thread, and its files, the one that was changed last first."""

    bars: list[Bar]
    files: list[tuple[str, str]]
    """The path, and the address of the last change's line."""
    has_more_turns: bool
    has_more_files: bool

    @classmethod
    def of(cls, db: Db, session: Session, thread_id: str, place: Place, now: datetime) -> "Times":
        """Return the times of a thread, in four statements."""
        of_thread = {"session": session.id, "thread": thread_id}
        turns = db.rows(_TURNS, most=MOST_TURNS + 1, **of_thread)
        shown_turns = turns[:MOST_TURNS]
        since = shown_turns[-1][1] if len(turns) > MOST_TURNS else None
        ids = [turn_id for turn_id, *_ in shown_turns]
        waits = db.rows(_WAITS, since=since, most=MOST_WAITS, **of_thread)
        bars = [
            *_of_turns(shown_turns, place, now),
            *_of_attempts(db.rows(_ATTEMPTS, turns=ids) if ids else [], place, now),
            *_of_waits(waits, Names.of(db, {by for *_, by in waits}), place, now),
        ]
        files = db.rows(_FILES, turns=ids, most=MOST_FILES + 1) if ids else []
        links = [(visible(str(path)), place.link(at, call_id)) for call_id, path, at in files[:MOST_FILES]]
        return cls(bars, links, len(turns) > MOST_TURNS, len(files) > MOST_FILES)


def _of_turns(rows: list[Any], place: Place, now: datetime) -> Iterator[Bar]:
    for _, start, end, status in rows:
        end = end or (now if status == "running" else start)  # noqa: PLW2901 - the end as far as it is known
        is_bad = status == "failed"
        yield Bar("model", start, end, f"Model, {short(end - start)}" + (", failed" if is_bad else ""), place.link(start), is_bad)


def _of_attempts(rows: list[Any], place: Place, now: datetime) -> Iterator[Bar]:
    for call_id, name, status, is_error, start, end in rows:
        end = end or (now if status == "running" else start)  # noqa: PLW2901 - likewise
        yield Bar("tool", start, end, f"{tool_in_words(name)}, {short(end - start)}", place.link(start, call_id), bool(is_error))


def _of_waits(rows: list[Any], names: Names, place: Place, now: datetime) -> Iterator[Bar]:
    for call_id, start, decided_at, expires_at, status, by in rows:
        end = decided_at or (now if status == "pending" else expires_at)
        whom = visible(names[by]) if is_by_person(by) else "people"
        yield Bar(
            "person", start, end, f"Waited for {whom}, {short(max(end - start, timedelta()))}", place.link(start, call_id or "")
        )


def moment_of(text: str | None) -> datetime | None:
    """Return the time that `at` of an address names, in milliseconds; None for anything else."""
    text = text or ""
    is_number = text.isascii() and text.isdecimal() and len(text) < 15
    return datetime.fromtimestamp(int(text) / 1000, UTC) if is_number else None


_TURNS = """
    SELECT id, started_at, ended_at, status FROM turn
    WHERE session_id = %(session)s AND thread_id = %(thread)s AND started_at IS NOT NULL ORDER BY number DESC LIMIT %(most)s
"""
_ATTEMPTS = """
    SELECT tool_call.id, name, status, is_error, attempt.started_at, attempt.ended_at
    FROM tool_call JOIN attempt ON attempt.tool_call_id = tool_call.id WHERE turn_id = ANY(%(turns)s)
"""
_WAITS = """
    SELECT tool_call_id, created_at, decided_at, expires_at, status, decided_by FROM approval
    WHERE session_id = %(session)s AND thread_id = %(thread)s AND created_at >= coalesce(%(since)s::timestamptz, '-infinity')
    ORDER BY created_at DESC LIMIT %(most)s
"""
_FILES = """
    SELECT id, path, settled_at FROM (
        SELECT DISTINCT ON (path) id, path, settled_at FROM (
            SELECT id, coalesce(shown_input, input) ->> 'file_path' AS path, settled_at
            FROM tool_call JOIN call_input ON tool_call_id = tool_call.id
            WHERE turn_id = ANY(%(turns)s) AND name IN ('edit', 'write') AND status = 'done' AND NOT is_error
        ) change WHERE path IS NOT NULL ORDER BY path, settled_at DESC
    ) file ORDER BY settled_at DESC LIMIT %(most)s
"""
