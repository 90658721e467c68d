"""Invariants of a session's rows, which hold after every transaction."""

from dataclasses import dataclass
from typing import Any

from rows.between_threads import BETWEEN_THREADS

from deploy.standin.pairing import check_pairs
from models.audit.acts import GENESIS, Audit, link
from models.audit.principal import system
from models.database.transactions import transaction
from models.flow.carry_on.next_move import waits_for
from models.flow.lock import lock
from models.flow.run.history import history
from models.operate.doctor.sessions import faults
from models.pure.states import SETTLED
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.event.row import Event
from models.session.row import Session
from models.session.thread.row import Thread
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

STATUS = "session.thread_status_"
SAYS = {"waiting": "idle", "rescheduling": "rescheduled"}
"""The end of the type of the event of a thread's status, where it is not the status."""


@dataclass(frozen=True)
class Invariants:
    """One session with all of its rows, at one moment."""

    session: Session
    threads: list[Thread]
    turns: list[Turn]
    calls: list[ToolCall]
    attempts: list[Attempt]
    approvals: list[Approval]
    events: list[Event]
    audit: list[Audit]
    messages: list[dict[str, Any]]
    grants: dict[str, Grant]
    """The grants that allowed calls of the session, by id."""

    @classmethod
    def read(cls, workspace_id: str, session_id: str) -> "Invariants":
        """Read all rows of a session, under its lock."""
        with transaction(workspace_id) as db:
            locked = lock(db, session_id, system("test", workspace_id))

            def rows(table: Any, by: str) -> list[Any]:
                return db.find(table, f"WHERE session_id = %(session)s ORDER BY {by}", session=session_id)

            calls = rows(ToolCall, "created_at")
            grants = db.find(Grant, "WHERE id = ANY(%(ids)s)", ids=[grant for call in calls for grant in call.grants or ()])
            return cls(
                locked.session,
                db.read(Thread.of_session(session_id))[0],
                rows(Turn, "number"),
                calls,
                rows(Attempt, "started_at"),
                rows(Approval, "created_at"),
                rows(Event, "seq"),
                db.find(Audit, "WHERE chain = %(chain)s ORDER BY seq", chain=session_id),
                history(db, locked.thread),
                {grant.id: grant for grant in grants},
            )

    def check(self) -> None:
        """Assert the invariants. The history of a session at rest is one that the model accepts."""
        session = self.session
        assert [e.seq for e in self.events] == list(range(1, session.last_seq + 1)), "events are numbered without a gap"
        for thread in self.threads:
            self.check_thread(thread)
        waiting = {thread.waits_for for thread in self.threads} - {"none"}
        whom = "none" if not waiting else waiting.pop() if len(waiting) == 1 else "both"
        assert session.waits_for == (whom if session.status == "waiting" else "none")
        head = GENESIS
        for row in self.audit:
            head = link(head, row)
            assert row.hash == head, f"audit row {row.seq} is chained"
        assert head == session.audit_head
        self.check_ends()
        self.check_streams()
        self.check_grants()
        for promise in BETWEEN_THREADS:
            promise(self)
        assert not faults([session.id]), "the doctor finds nothing in a healthy session"
        if session.status in {"idle", "terminated"}:
            check_pairs(self.messages)

    def check_grants(self) -> None:
        """Assert that each grant covers the threads whose calls it allowed."""
        threads = {thread.id: thread for thread in self.threads}
        for call in self.calls:
            for grant_id in call.grants or ():
                assert self.grants[grant_id].threads.covers(threads[call.thread_id])

    def check_thread(self, thread: Thread) -> None:
        """Assert the invariants of one thread."""
        turns = [turn for turn in self.turns if turn.thread_id == thread.id]
        assert [turn.number for turn in turns] == list(range(1, thread.turn_number + 1)), "turns neither fork nor skip"
        active = [turn for turn in turns if turn.status in {"queued", "running"}]
        calls = [call for call in self.calls if call.thread_id == thread.id]
        unsettled = [call for call in calls if call.status not in SETTLED]
        queued = [event for event in self.events if event.thread_id == thread.id and event.processed_at is None]
        assert len(active) <= 1, "one turn at a time"
        asks = [each for each in self.approvals if each.tool_call_id is None and each.status == "pending"]
        for_money = [approval for approval in asks if approval.id == thread.cap_approval_id]
        waits = "person" if for_money else waits_for(call.status for call in calls)
        assert thread.waits_for == (waits if thread.status == "waiting" else "none")
        if thread.status in {"idle", "terminated"}:
            assert not active, "an idle thread has no turn under way"
            assert not unsettled, "an idle thread has no unsettled call"
            assert not for_money, "an idle thread asks for no money"
            assert not queued, "an idle thread has read every message"
        else:
            assert active or unsettled or for_money, f"a thread that is {thread.status} has something to go on with"

    def check_streams(self) -> None:
        """Assert that threads say what they are, the session's own first, and that its stream has each call that is asked about."""
        own = self.threads[0]
        changes = [event for event in self.events if event.type.startswith(STATUS)]
        assert bool(changes) == (len(self.threads) > 1), "a session of one thread says nothing of threads"
        assert {event.thread_id for event in changes[:1]} <= {own.id}, "the session's own thread says its status first"
        last = {event.thread_id: event for event in changes}
        for thread in [each for each in self.threads if each.id in last and each.status != "stopping"]:
            event, name = last[thread.id], SAYS.get(thread.status, thread.status)
            assert event.type == STATUS + name, f"a thread that is {thread.status} says so"
            assert name != "idle" or event.body["stop_reason"] == (thread.stop_reason or {"type": "end_turn"})
        shown = {event.id for event in self.events if event.is_in(own.id)}
        needing = {call.id for call in self.calls if call.status in {"asked", "unknown", "with_client"} and call.announced}
        assert needing <= shown, "whoever reads the session's stream has seen the call"

    def check_ends(self) -> None:
        """Assert that ended rows say when, and that only running rows have a lease, an open attempt or an open span."""
        for turn in self.turns:
            assert (turn.ended_at is None) == (turn.status in {"queued", "running"}), f"a turn that is {turn.status}"
        for call in self.calls:
            assert (call.settled_at is not None) == (call.status in SETTLED), f"a call that is {call.status}"
        for row in [*self.turns, *self.calls]:
            assert (row.lease_until is not None) == (row.status == "running"), f"{row.id} is {row.status}"
        under_way = {(attempt.tool_call_id, attempt.number) for attempt in self.attempts if attempt.ended_at is None}
        assert under_way == {(call.id, call.attempt) for call in self.calls if call.status == "running"}
        begun = sorted(event.id for event in self.events if event.type == "span.model_request_start")
        ended = [event.body["model_request_start_id"] for event in self.events if event.type == "span.model_request_end"]
        assert begun == sorted(ended + [turn.span_id for turn in self.turns if turn.status == "running"]), "each span ends once"
        open_ = sorted(each.tool_call_id for each in self.approvals if each.status == "pending" and each.tool_call_id)
        assert open_ == sorted(c.id for c in self.calls if c.status in {"asked", "unknown"}), "one question to each that waits"
