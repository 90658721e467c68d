"""Turns that are in the archive: for the history of a thread, and for the list of a session's messages."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from models.database.rows import Db
from models.database.tables import table_of
from models.session.archive.contents import Fault
from models.session.archive.part import ArchivePart
from models.session.archive.reading import content_of, contents_after
from models.session.event.row import MESSAGES, Event
from models.session.row import Session
from models.session.thread.row import Thread
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult
from models.session.turn.reply import Reply
from models.session.turn.row import Turn

log = logging.getLogger(__name__)

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Stored:
    """The rows of a history, wherever they are, as `models.flow.run.history.parts` takes them."""

    turns: Rows
    """Id, number, reply, stop reason."""
    prompts: Rows
    """The id of the turn that read the message, its number, its content, and the thread and the name of its sender."""
    calls: Rows
    """The turn's id, position, result, whether it is an error, and the input that ran if a person changed it."""
    lost: set[str]
    """The ids of the turns of which something is in a part that cannot be read."""


def complete(db: Db, thread: Thread, seq: int, rows: Sequence[Rows]) -> Stored:
    """Return the rows that a history needs, with those that are in the archive.

    `rows` are those of turns, prompts and calls. Turns and calls have more columns than are returned: whether a reply is stored; a
    call's id, whether it is done, and whether a result is stored. `seq`: the last event that a summary covers. Parts that it covers
    are not read.
    """
    turns, prompts, calls = rows
    replies: dict[str, Any] = {}
    results: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    before: list[tuple[Any, ...]] = []
    if db.get_one(Session, thread.session_id).archived_through > seq:
        for _, content in contents_after(db, thread.session_id, seq):
            if isinstance(content, Fault):
                log.error("%s", content.sentence)
                continue
            replies |= {row["turn_id"]: row["content"] for row in content.of("reply")}
            results |= {row["tool_call_id"]: row["content"] for row in content.of("call_result")}
            inputs |= {row["tool_call_id"]: row["input"] for row in content.of("call_input") if row["proposed_input"] is not None}
            before += [_prompt(row) for row in content.of("event") if _is_prompt(row, thread.id) and row["seq"] > seq]
    filled_turns = [(*turn[:2], replies.get(turn[0]) if turn[2] is None else turn[2], turn[3]) for turn in turns]
    filled_calls, lost_of_calls = [], set()
    for turn_id, position, result, is_error, edited, call_id, is_done, has_result in calls:
        if result is None:
            result, edited = results.get(call_id), inputs.get(call_id) if is_done else None  # noqa: PLW2901 - from the archive
            if result is None and has_result:
                lost_of_calls.add(turn_id)
        filled_calls.append((turn_id, position, result, is_error, edited))
    lost = {turn[0] for turn, full in zip(turns, filled_turns, strict=True) if turn[4] and full[2] is None}
    return Stored(filled_turns, [*before, *prompts], filled_calls, lost | lost_of_calls)


def _is_prompt(event: dict[str, Any], thread_id: str) -> bool:
    return event["thread_id"] == thread_id and event["type"] in MESSAGES and event["turn_id"] is not None


def _prompt(event: dict[str, Any]) -> tuple[Any, ...]:
    body = event["body"]
    return event["turn_id"], event["seq"], body["content"], body.get("from_session_thread_id"), body.get("from_agent_name")


@dataclass
class ArchivedTurns:
    """The archived rows of a page of turns, by the id of the turn or of the call."""

    events: list[Event] = field(default_factory=list)
    """The messages that turns read."""
    replies: dict[str, Reply] = field(default_factory=dict)
    inputs: dict[str, CallInput] = field(default_factory=dict)
    results: dict[str, CallResult] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """What is wrong with parts that cannot be read."""

    @classmethod
    def of_turns(cls, db: Db, session: Session, turns: Sequence[Turn]) -> "ArchivedTurns":
        """Return the archived rows of these turns, which are in order, beside those of other turns of the same time."""
        rows = cls()
        if not turns or not session.archived_through:
            return rows
        first, last = turns[0], turns[-1]
        # A turn reads what was written since the turn before it began, and its calls have ended when the next one is queued.
        of_thread = {"session": session.id, "thread": first.thread_id}
        start = db.value(f"SELECT started_at {_TURN}", **of_thread, number=first.number - 1)
        end = db.value(f"SELECT created_at {_TURN}", **of_thread, number=last.number + 1)
        for part in ArchivePart.between(db, session.id, start, end):
            content = content_of(part)
            if isinstance(content, Fault):
                rows.faults.append(content.sentence)
                continue
            rows.events += [table_of(Event).of_json(row) for row in content.of("event") if row["type"] == "user.message"]
            rows.replies |= {row["turn_id"]: table_of(Reply).of_json(row) for row in content.of("reply")}
            rows.inputs |= {row["tool_call_id"]: table_of(CallInput).of_json(row) for row in content.of("call_input")}
            rows.results |= {row["tool_call_id"]: table_of(CallResult).of_json(row) for row in content.of("call_result")}
        return rows


_TURN = "FROM turn WHERE session_id = %(session)s AND thread_id = %(thread)s AND number = %(number)s"
