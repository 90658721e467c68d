"""A page of a thread's events as a timeline: what was said, one line per call, and how long the run waited for whom."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from api.desk.rendering.gist import TOOL_GLYPHS, in_words, of_call, one_line
from api.desk.rendering.story import texts
from api.desk.rendering.tree import tree
from api.desk.sessions.lines import Call, Line, Output, note_of, short
from models.briefing.because import sentence
from models.briefing.tool_name import tool_in_words
from models.database.rows import Db
from models.flow.carry_on.listing import OURS
from models.people.names import Names
from models.pure.state_words import GIVEN_UP, SESSION, TOOL_CALL, StateWord, call_state
from models.pure.text.relative_time import span
from models.pure.text.visible import visible, visible_lines
from models.session.approval.row import Approval
from models.session.approval.sentences import ending
from models.session.event.row import Event
from models.session.row import Session
from models.session.thread.row import Thread
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.events import RESULTS, USES
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt

_WAIT = timedelta(seconds=60)
"""The shortest wait that has a line of its own."""
_QUIET = timedelta(minutes=5)
"""The shortest time between two runs that has a line of its own."""
_CALL_FIELDS = dict(RESULTS.values())
"""The field that names the call, by the type of the result's event."""
_EXIT = re.compile(r"^exit code: (\d{1,3})$", re.MULTILINE)


class Timeline:
    """The lines of a page of events, oldest first. `lines` is complete after `Timeline.of`."""

    def __init__(self, db: Db, thread_id: str) -> None:
        self.db, self.thread_id = db, thread_id
        self.lines: list[Line] = []
        self._line_of_call: dict[str, Line] = {}

    @classmethod
    def of(cls, db: Db, rows: Sequence[Event], thread_id: str) -> "Timeline":
        """Return the timeline of events of one thread's stream, in their order."""
        result = cls(db, thread_id)
        result._read(rows)
        for row in rows:
            result._add(row)
        return result

    @property
    def fault(self) -> str:
        """The last error; empty without one."""
        return next((line.text for line in reversed(self.lines) if line.css == "error"), "")

    def _read(self, rows: Sequence[Event]) -> None:
        """Read what the events are about, in at most six statements, however many there are."""
        db = self.db
        Thread.read_ahead(db, rows)
        call_ids = sorted({call_id for row in rows if (call_id := _call_of(row))})
        asked_ids = sorted({row.body["approval_id"] for row in rows if row.type == "approval.requested"})
        self.calls = {row.id: row for row in db.find(ToolCall, "WHERE id = ANY(%(ids)s)", ids=call_ids)} if call_ids else {}
        self.is_halted = any(call.status == "queued" for call in self.calls.values()) and Halt.current(db) is not None
        about = "WHERE tool_call_id = ANY(%(ids)s)"
        approvals = db.find(Approval, about, ids=call_ids) if call_ids else []
        approvals += db.find(Approval, "WHERE id = ANY(%(ids)s)", ids=asked_ids) if asked_ids else []
        self.approvals = {row.id: row for row in approvals}
        self.of_call: dict[str, list[Approval]] = {}
        for approval in sorted(self.approvals.values(), key=Approval.age):
            self.of_call.setdefault(approval.tool_call_id or "", []).append(approval)
        self.attempts: dict[str, list[Attempt]] = {}
        for attempt in db.find(Attempt, f"{about} ORDER BY number", ids=call_ids) if call_ids else []:
            self.attempts.setdefault(attempt.tool_call_id, []).append(attempt)
        principals = {approval.decided_by for approval in self.approvals.values()}
        writers = {row.body.get("on_behalf_of") for row in rows if row.type == "user.message"}
        self.names = Names.of(db, principals | writers)
        self.client = self._client(rows[0].session_id) if None in writers else ""

    def _client(self, session_id: str) -> str:
        """Return who wrote a message that names no person: a key, as a rule the one that started the session.

        Never the person for whom the session was started.
        """
        session = self.db.get_one(Session, session_id)
        return ("" if session.on_behalf_of else session.starter(self.db)) or "client"

    def _add(self, row: Event) -> None:
        event = row.shown(whole=False)
        if row.type in USES:
            self._add_call(row, event)
        elif row.type in _CALL_FIELDS:
            self._add_result(row, event)
        elif row.type == "user.tool_confirmation":
            self._add_decision(row)
        elif row.type == "approval.requested" and row.body.get("tool_use_id") is None:
            self._add_question(row)
        elif row.type == "session.error":
            self._add_error(row, event)
        elif row.type in {"user.message", "agent.message", "agent.thread_message_received", "user.interrupt"}:
            self._add_message(row, event)
        elif self._asker(row) == "" and (words := note_of(event)) and not self._ends_with_note(words):
            self._put(row, "note", "", words)

    def _ends_with_note(self, words: str) -> bool:
        """True if the last line is this note already, as after a question about money that was denied."""
        return bool(self.lines) and (self.lines[-1].css, self.lines[-1].text) == ("note", words)

    def _put(self, row: Event, css: str, who: str, text: str = "", **more: Any) -> Line:
        line = Line(row.id, row.seq, _time(row), css, who, text, **more)
        self.lines.append(line)
        return line

    def _gap(self, row: Event, words: str) -> None:
        self.lines.append(Line(f"gap-{row.id}", row.seq, _time(row), "gap", "", words))

    def _asker(self, row: Event) -> str:
        """Return the path to the agent of another thread; empty for the thread's own events."""
        return "" if row.thread_id == self.thread_id else Thread.path_words(self.db, row.session_id, row.thread_id)

    def _add_message(self, row: Event, event: Mapping[str, Any]) -> None:
        text = visible_lines(texts(event.get("content") or ()))
        if row.type == "user.interrupt":
            self._put(row, "ruling", "person", "Stop.")
        elif row.type == "agent.thread_message_received":
            self._put(row, "received", f"from {visible(event.get('from_agent_name') or 'coordinator')}", text)
        elif OURS in event:
            self._put(row, "note", "Assent", text)
        elif row.type == "agent.message":
            self._put(row, "agent", "agent", texts(event.get("content") or ()))  # Markdown makes hidden characters visible itself
        else:
            if self.lines and row.created_at - self.lines[-1].at >= _QUIET and self.lines[-1].css == "note":
                self._gap(row, f"{span((row.created_at - self.lines[-1].at).total_seconds())} later")
            self._put(row, "person", visible(self.names[by] if (by := event.get("on_behalf_of")) else self.client), text)

    def _add_call(self, row: Event, event: Mapping[str, Any]) -> None:
        asker, tool = self._asker(row), str(event["name"])
        arguments: Mapping[str, Any] = event["input"]
        code, size = of_call(tool, arguments)
        tool_call = self.calls.get(row.id)
        call = Call(
            glyph=TOOL_GLYPHS.get(tool, "plug" if row.type == "agent.mcp_tool_use" else "function"),
            tool=(f"{asker}: " if asker else "") + tool_in_words(tool),
            gist=one_line(code or in_words(arguments)) + (f" {size}" if size else ""),
            is_code=bool(code),
            state=self._state(tool_call),
            facts=self._facts(tool_call),
            why=sentence(tool_call.rule, tool_call.permission) if tool_call else "",
        )
        if tool == "bash" and set(arguments) == {"command"} and isinstance(arguments["command"], str):
            call.command = visible_lines(arguments["command"])
        else:
            call.arguments = tree(dict(arguments))
        if tool_call:
            self._tell(call, tool_call)
        self._line_of_call[row.id] = self._put(row, "call", "", call=call)

    def _end(self, tool_call: ToolCall) -> str:
        """Return how people last decided about a call: `allowed by Ben`; empty if nobody did."""
        last = self._last_decided(tool_call)
        words = visible(ending(last, self.names[last.decided_by])) if last else ""
        return words[:1].lower() + words[1:]

    def _last_decided(self, tool_call: ToolCall) -> Approval | None:
        return next((each for each in reversed(self.of_call.get(tool_call.id, ())) if each.status != "pending"), None)

    def _is_given_up(self, tool_call: ToolCall) -> bool:
        last = self._last_decided(tool_call)
        return tool_call.status == "done" and last is not None and last.state == GIVEN_UP

    def _state(self, tool_call: ToolCall | None) -> StateWord:
        """Return a call's state. That of a call that people ended names them."""
        if tool_call is None:
            return TOOL_CALL["done"]
        is_given_up = self._is_given_up(tool_call)
        if tool_call.status == "done" and tool_call.is_error and not is_given_up:
            return SESSION["failed"]
        state = GIVEN_UP if is_given_up else call_state(tool_call.status, halted=self.is_halted)
        return replace(state, word=self._end(tool_call)) if self._is_ended_by_people(tool_call) else state

    def _is_ended_by_people(self, tool_call: ToolCall) -> bool:
        is_end = tool_call.status in {"denied", "answered", "expired"} or self._is_given_up(tool_call)
        return is_end and bool(self._end(tool_call))

    def _facts(self, tool_call: ToolCall | None) -> list[str]:
        if tool_call is None:
            return []
        end = self._end(tool_call)
        facts = [end] if end and not self._is_ended_by_people(tool_call) else []
        if not end and tool_call.grants:
            facts.append("allowed by a grant")
        attempts = self.attempts.get(tool_call.id, ())
        if len(attempts) > 1:
            facts.append(f"{len(attempts)} attempts")
        if attempts and (ended_at := attempts[-1].ended_at):
            facts.append(short(ended_at - attempts[-1].started_at))
        return facts

    def _tell(self, call: Call, tool_call: ToolCall) -> None:
        """Tell the decisions and attempts of a call."""
        for approval in self.of_call.get(tool_call.id, ()):
            if approval.status == "pending":
                call.approval_id = approval.id
                continue
            wait = ((approval.decided_at or approval.expires_at) - approval.created_at).total_seconds()
            message = (approval.shown("decision") or {}).get("deny_message")
            words = f"{ending(approval, self.names[approval.decided_by])}, after {span(wait)}"
            call.decisions.append(visible_lines(f"{words}: {message}" if message else f"{words}."))
        attempts = self.attempts.get(tool_call.id, ())
        if len(attempts) > 1:
            for attempt in attempts:
                length = f", {short(attempt.ended_at - attempt.started_at)}" if attempt.ended_at else ""
                call.attempts.append(f"Attempt {attempt.number}: {_ENDS.get(attempt.outcome or '', 'no end was reported')}{length}")

    def _add_result(self, row: Event, event: Mapping[str, Any]) -> None:
        call_id = str(event[_CALL_FIELDS[row.type]])
        text, tool_call = texts(event.get("content") or ()), self.calls.get(call_id)
        self._gap_of_client(row, tool_call)
        line = self._line_of_call.get(call_id)
        if line is None or line.call is None:
            name = tool_in_words(tool_call.tool or tool_call.name) if tool_call else "a call"
            css = "error" if event.get("is_error") else "result"
            self._put(row, css, f"result of {name}", output=Output.of(text))
            return
        line.call.output = Output.of(text)
        if tool_call and tool_call.name == "bash" and (code := _EXIT.findall(text)):
            line.call.facts.insert(-1 if self.attempts.get(call_id) else len(line.call.facts), f"exit {code[-1]}")

    def _gap_of_client(self, row: Event, tool_call: ToolCall | None) -> None:
        if row.type.startswith("user.") and tool_call and tool_call.deadline_from:
            wait = row.created_at - tool_call.deadline_from
            if wait >= _WAIT:
                self._gap(row, f"waited {span(wait.total_seconds())} for the client")

    def _add_decision(self, row: Event) -> None:
        """Tell how long the run waited. The line of the call says what was decided, unless it is on an earlier page."""
        approval = self.approvals.get(row.body.get("approval_id", ""))
        if approval is None:
            return
        wait = row.created_at - approval.created_at
        if wait >= _WAIT and approval.by_person:
            self._gap(row, f"waited {span(wait.total_seconds())} for {visible(self.names[approval.decided_by])}")
        elif wait >= _WAIT and approval.by_deadline:
            self._gap(row, f"waited {span(wait.total_seconds())}, and nobody decided")
        if row.body["tool_use_id"] not in self._line_of_call:
            self._put(row, "ruling", "decision", visible_lines(ending(approval, self.names[approval.decided_by])))

    def _add_question(self, row: Event) -> None:
        """Add a question that is not about a call, such as about money."""
        approval = self.approvals.get(row.body["approval_id"])
        if approval is None:
            return
        is_open = approval.status == "pending"
        words = "" if is_open else f" {ending(approval, self.names[approval.decided_by])}."
        text = visible_lines(approval.prompt) + visible_lines(words)
        self._put(row, "ruling", "question", text, approval_id=approval.id if is_open else "")
        if not is_open and approval.decided_at and approval.decided_at - approval.created_at >= _WAIT and approval.by_person:
            wait = (approval.decided_at - approval.created_at).total_seconds()
            self._gap(row, f"waited {span(wait)} for {visible(self.names[approval.decided_by])}")

    def _add_error(self, row: Event, event: Mapping[str, Any]) -> None:
        text = visible_lines(str(event["error"].get("message", "")))
        last = self.lines[-1] if self.lines else None
        if last and last.css == "error" and last.text == text and last.output is None:
            last.times, last.last_at = last.times + 1, _time(row)
        else:
            self._put(row, "error", "error", text)


_ENDS = {name: state.word for name, state in TOOL_CALL.items()} | {
    "lost": "its worker was lost",
    "not_begun": "did not begin",
}
"""How an attempt ended, by its outcome."""


def _call_of(row: Event) -> str:
    """Return the id of the call that an event is about; empty for other events."""
    if row.type in USES:
        return row.id
    name = _CALL_FIELDS.get(row.type, "tool_use_id" if row.type == "user.tool_confirmation" else "")
    return str(row.body.get(name) or "") if name else ""


def _time(row: Event) -> datetime:
    """Return when an event was; that for a part of the archive which cannot be read has the part's last time."""
    at = row.created_at or row.processed_at
    assert at is not None, "the archive names the time of each part"
    return at
