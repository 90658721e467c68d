"""Where the time of a thread went, from its rows, in one window of its turns: the requests to the model, the attempts of calls, the
waits for people; and the files that the calls of these turns have changed.

Rows of turns, calls and approvals stay where they are when a session is archived, and an index leads to those of a thread. The
names of files go to the archive with the inputs of calls.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
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
from models.session.thread.row import Thread

WINDOW = 60
"""Turns of a window."""
MOST_BARS = 1_000
"""Attempts, and waits, that are drawn of a window: the newest."""
MOST_FILES = 100


@dataclass(frozen=True)
class Window:
    """The turns of a thread whose time is drawn, by number: at most WINDOW up to `last`."""

    last: int
    total: int
    """Number of the thread's newest turn."""

    @classmethod
    def of(cls, thread: Thread, last: int | None) -> "Window":
        """Return the window that ends with a turn; without one, or beyond all turns, the newest."""
        total = thread.turn_number
        return cls(min(max(last, 1), total) if last else total, total)

    @property
    def first(self) -> int:
        """The number of its oldest turn."""
        return max(self.last - WINDOW + 1, 1)

    @property
    def is_newest(self) -> bool:
        """True if it ends with the newest turn."""
        return self.last == self.total

    @property
    def earlier(self) -> int | None:
        """The last turn of the window before; None before the first one."""
        return self.first - 1 if self.first > 1 else None

    @property
    def later(self) -> int | None:
        """The last turn of the window after; None after the newest one."""
        return None if self.is_newest else min(self.last + WINDOW, self.total)

    @property
    def words(self) -> str:
        """Which turns these are; empty if they are all."""
        if self.first == 1 and self.is_newest:
            return ""
        if self.is_newest:
            return f"The newest {WINDOW} of {self.total:,} turns"
        return f"Turns {self.first:,} to {self.last:,} of {self.total:,}"


@dataclass(frozen=True)
class Place:
    """The page of a timeline that is shown, with the window of turns beside it, and the address of the thread's page."""

    lines: list[Line]
    address: str
    window: Window
    before: int | None = None
    """The event before which the page ends; None on the page of the newest ones."""

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
        line = f"&line={line_id}" if line_id else ""
        return f"{self.address}?at={round(moment.timestamp() * 1000)}{line}{self._turns}"

    def page_before(self, seq: int) -> str:
        """Return the address of the page that ends before an event, beside the same turns."""
        return f"{self.address}?before={seq}{self._turns}"

    def beside(self, last: int) -> str:
        """Return the address of the same page beside the turns up to one of them."""
        before = f"before={self.before}&" if self.before else ""
        return f"{self.address}?{before}turns={last}#lanes"

    @cached_property
    def _turns(self) -> str:
        return "" if self.window.is_newest else f"&turns={self.window.last}"


@dataclass(frozen=True)
class Times:
    """The bars of a window of turns, and the files that they changed, the one that was changed last first."""

    bars: list[Bar]
    files: list[tuple[str, str]]
    """The path, and the address of the last change's line."""
    has_more_bars: bool
    has_more_files: bool

    @classmethod
    def of(cls, db: Db, thread: Thread, place: Place, now: datetime) -> "Times":
        """Return the times of a thread in the window of the place, in five statements."""
        window, of_thread = place.window, {"session": thread.session_id, "thread": thread.id}
        rows = db.rows(_TURNS, first=window.first, last=window.last, **of_thread)
        ids = [turn_id for number, turn_id, *_ in rows if number <= window.last]
        since = rows[0][2] if rows and window.earlier else None
        until = next((created_at for number, _, created_at, *_ in rows if number > window.last), None)
        attempts = db.rows(_ATTEMPTS, turns=ids, most=MOST_BARS + 1)
        waits = db.rows(_WAITS, turns=ids, since=since, until=until, most=MOST_BARS + 1, **of_thread)
        bars = [
            *_of_turns(rows[: len(ids)], place, now),
            *_of_attempts(attempts[:MOST_BARS], place, now),
            *_of_waits(waits[:MOST_BARS], Names.of(db, {by for *_, by in waits}), place, now),
        ]
        files = db.rows(_FILES, turns=ids, most=MOST_FILES + 1)
        links = [(visible(str(path)), place.link(at, call_id)) for call_id, path, at in files[:MOST_FILES]]
        return cls(bars, links, max(len(attempts), len(waits)) > MOST_BARS, len(files) > MOST_FILES)


def _of_turns(rows: Sequence[Any], place: Place, now: datetime) -> Iterator[Bar]:
    for *_, start, end, status in rows:
        if start is None:
            continue
        end = end or (now if status == "running" else start)  # noqa: PLW2901 - the end as far as it is known
        is_bad = status == "failed"
        yield Bar("model", start, end, f"Model, {short(end - start)}" + (", failed" if is_bad else ""), place.link(start), is_bad)


def _of_attempts(rows: Sequence[Any], place: Place, now: datetime) -> Iterator[Bar]:
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
    SELECT number, id, created_at, started_at, ended_at, status FROM turn
    WHERE session_id = %(session)s AND thread_id = %(thread)s AND number BETWEEN %(first)s AND %(last)s + 1
    ORDER BY number
"""
_ATTEMPTS = """
    SELECT tool_call.id, name, status, is_error, attempt.started_at, attempt.ended_at
    FROM tool_call JOIN attempt ON attempt.tool_call_id = tool_call.id WHERE turn_id = ANY(%(turns)s)
    ORDER BY attempt.started_at DESC LIMIT %(most)s
"""
_WAITS = """
    SELECT * FROM (
        SELECT tool_call_id, approval.created_at, decided_at, expires_at, approval.status, decided_by
        FROM tool_call JOIN approval ON tool_call_id = tool_call.id WHERE turn_id = ANY(%(turns)s)
        UNION ALL
        SELECT tool_call_id, created_at, decided_at, expires_at, status, decided_by FROM approval
        WHERE session_id = %(session)s AND thread_id = %(thread)s AND tool_call_id IS NULL
            AND created_at >= coalesce(%(since)s::timestamptz, '-infinity')
            AND created_at < coalesce(%(until)s::timestamptz, 'infinity')
    ) wait ORDER BY created_at DESC LIMIT %(most)s
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
