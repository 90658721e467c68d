"""Checks of a session's rows that hold after any transaction. They use no verdicts of the code under test."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from rows.between_threads import BETWEEN_THREADS

from deploy.standin.pairing import check_pairs
from deploy.standin.rules import check as check_request
from models.audit.acts import GENESIS, Audit, link
from models.audit.principal import system
from models.database.daily_usage import DAYS
from models.database.transactions import transaction
from models.flow.lock import lock
from models.flow.run.history import history
from models.operate.doctor.sessions import faults
from models.pure.json.canonical import canonical, digest
from models.pure.pricing.charges import summed
from models.pure.states import NEEDS_SOMEBODY, SETTLED
from models.session.approval.grant import Grant
from models.session.approval.row import Approval
from models.session.event.row import Event
from models.session.row import Session
from models.session.thread.row import Thread
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.session.turn.reply import Reply
from models.session.turn.row import Turn
from models.session.turn.usage import TurnUsage
from workers.providers import ModelRequest
from workers.providers.anthropic_request import params

_SUMS = "coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), coalesce(sum(cost), 0)"
_USAGE = f"""
    SELECT coalesce(count(*), 0), {_SUMS} FROM turn_usage
    UNION ALL SELECT coalesce(sum(requests), 0), {_SUMS} FROM {DAYS}
"""
"""One statement, so that both sums are of the same moment."""
_VERSION = "SELECT xmin::text, xmax::text FROM session WHERE id = %(session)s"
BUSIEST_FIRST = ["running", "stopping", "rescheduling", "waiting", "idle", "terminated"]
NEXT = {"type": "text", "text": "And now?"}


@dataclass(frozen=True)
class Seen:
    """A session with all of its rows, as they were at one moment."""

    session: Session
    threads: list[Thread]
    turns: list[Turn]
    calls: list[ToolCall]
    inputs: dict[str, CallInput]
    """By the id of the call."""
    results: dict[str, list[dict[str, Any]]]
    """The content of each result, by the id of the call."""
    replies: dict[str, list[dict[str, Any]]]
    """The content of each reply, by the id of the turn."""
    attempts: list[Attempt]
    approvals: list[Approval]
    grants: list[Grant]
    events: list[Event]
    audit: list[Audit]
    messages: list[dict[str, Any]]
    usages: list[TurnUsage]
    attempted: tuple[Any, ...]
    """Requests, tokens and cost of all attempts of the workspace."""
    daily: tuple[Any, ...]
    """The same, of its days."""
    version: tuple[Any, ...]
    """What `version` returns until somebody else locks the session."""

    def of(self, kind: str) -> list[Event]:
        """The events of one type."""
        return [event for event in self.events if event.type == kind]

    def call(self, name: str) -> ToolCall:
        """The only call of that tool."""
        (call,) = [call for call in self.calls if call.name == name]
        return call

    def result(self, number: int = 0) -> list[dict[str, Any]]:
        """The result of a call, by its number among all calls of the session."""
        return self.results[self.calls[number].id]

    def prompt(self, turn: Turn) -> list[dict[str, Any]]:
        """The content of the messages that a turn read."""
        return [block for event in self.events if event.turn_id == turn.id for block in event.body["content"]]

    @property
    def running(self) -> list[Turn | ToolCall]:
        """The turns and calls that a worker holds, alive or dead."""
        return [row for row in (*self.turns, *self.calls) if row.status == "running"]

    @property
    def pending(self) -> list[Approval]:
        return [approval for approval in self.approvals if approval.status == "pending"]


def look(workspace_id: str, session_id: str) -> Seen:
    """All rows of a session, under its lock."""
    with transaction(workspace_id) as db:
        locked = lock(db, session_id, system("test", workspace_id))

        def rows(table: Any, by: str) -> list[Any]:
            return db.find(table, f"WHERE session_id = %(session)s ORDER BY {by}", session=session_id)

        def payloads(table: Any, key: str, of: str) -> list[Any]:
            of_session = f"(SELECT id FROM {of} WHERE session_id = %(session)s)"
            return db.find(table, f"WHERE {key} IN {of_session}", session=session_id)

        return Seen(
            locked.session,
            db.read(Thread.of_session(session_id))[0],
            rows(Turn, "created_at, number, id"),
            rows(ToolCall, "created_at, position"),
            {row.tool_call_id: row for row in payloads(CallInput, "tool_call_id", "tool_call")},
            {row.tool_call_id: row.content for row in payloads(CallResult, "tool_call_id", "tool_call")},
            {row.turn_id: row.content for row in payloads(Reply, "turn_id", "turn")},
            rows(Attempt, "started_at, number"),
            rows(Approval, "created_at, id"),
            db.find(Grant, "WHERE session_id = %(session)s OR session_id IS NULL ORDER BY id", session=session_id),
            rows(Event, "seq"),
            db.find(Audit, "WHERE chain = %(chain)s ORDER BY seq", chain=session_id),
            history(db, locked.thread),
            rows(TurnUsage, "at, attempt"),
            *db.rows(_USAGE),
            *db.rows(_VERSION, session=session_id),
        )


def version(workspace_id: str, session_id: str) -> tuple[Any, ...]:
    """Return a value that each lock of the session changes, and so each write of its rows. Costs much less than `look`."""
    with transaction(workspace_id) as db:
        [row] = db.rows(_VERSION, session=session_id)
        return row


def check_invariants(workspace_id: str, session_id: str) -> Seen:
    """Return a session's rows. Raises AssertionError for the first promise that they break."""
    seen = look(workspace_id, session_id)
    for promise in PROMISES:
        promise(seen)
    assert not faults([session_id]), "the doctor finds nothing in a healthy session"
    return seen


def something_moves_whatever_is_not_at_rest(seen: Seen) -> None:
    for thread in seen.threads:
        _moves_if_not_at_rest(seen, thread)
    statuses = {thread.status for thread in seen.threads}
    busiest = next(status for status in BUSIEST_FIRST if status in statuses)
    assert seen.session.status == busiest, "the session has the status of its busiest thread"
    if busiest == "waiting":
        reasons = [thread.stop_reason or {} for thread in seen.threads if thread.status == "waiting"]
        event_ids = [event_id for reason in reasons for event_id in reason.get("event_ids", [])]
        action = {"type": "requires_action", "event_ids": event_ids}
        assert seen.session.stop_reason == (action if event_ids else {"type": "budget_reached"}), "it names all that wait"


def _moves_if_not_at_rest(seen: Seen, thread: Thread) -> None:
    turns = [t for t in seen.turns if t.thread_id == thread.id]
    calls = [c for c in seen.calls if c.thread_id == thread.id]
    active = [t for t in turns if t.status in {"queued", "running"}]
    now = [c for c in calls if c.turn_id == thread.turn_id]
    under_way = [c for c in now if c.status in {"queued", "running"}]
    needing = [c.id for c in now if c.status in NEEDS_SOMEBODY]
    for_money = [a.id for a in seen.pending if a.tool_call_id is None and a.id == thread.cap_approval_id]
    events = [event for event in seen.events if event.thread_id == thread.id]
    assert len(active) <= 1, "a thread has one turn under way at most"
    assert all(t.id == thread.turn_id for t in active), "the turn under way is the thread's current one"
    assert all(c.status in SETTLED for c in calls if c.turn_id != thread.turn_id), "past turns have no open calls"
    if thread.status in {"idle", "terminated"}:
        assert not [*active, *under_way, *needing, *for_money], f"something is open, yet the thread is {thread.status}"
        assert all(event.processed_at for event in events), "no message is left in the queue of a thread at rest"
    elif thread.status == "waiting":
        assert bool(needing) != bool(for_money), "either calls need somebody, or the thread needs money"
        action = {"type": "requires_action", "event_ids": needing}
        assert thread.stop_reason == ({"type": "budget_reached"} if for_money else action)
        assert not active, "a turn under way while calls need somebody"
    elif thread.status == "running":
        assert active or under_way, "running, and nothing moves"
        assert not [*needing, *for_money], "running, and calls or the thread need somebody"
    elif thread.status == "rescheduling":
        assert [t.status for t in active] == ["queued"], "rescheduling without a queued turn"
    else:
        assert thread.status == "stopping"
        assert [c.status for c in now if c.status not in SETTLED] == ["running"] * len(under_way) != [], (
            "only running calls keep a session stopping"
        )


def one_attempt_unless_a_person_said_again(seen: Seen) -> None:
    attempts = Counter(a.tool_call_id for a in seen.attempts)
    reruns = Counter(
        a.tool_call_id for a in seen.approvals if a.status == "answered" and (a.decision or {}).get("outcome") == "rerun"
    )
    for call in seen.calls:
        assert attempts[call.id] == call.attempt, "each attempt has its row"
        if not call.idempotent:
            assert attempts[call.id] <= 1 + reruns[call.id], f"{call.name} was tried {attempts[call.id]} times"


def one_decision_per_approval(seen: Seen) -> None:
    confirmations = Counter(e.body["approval_id"] for e in seen.of("user.tool_confirmation"))
    for approval in seen.approvals:
        assert (approval.status == "pending") == (approval.decision is None) == (approval.decided_at is None)
        if approval.status in {"allowed", "denied", "answered"}:
            assert approval.decided_at < approval.expires_at, "decided in time"
        is_confirmed = approval.status != "pending" and approval.tool_call_id is not None
        assert confirmations[approval.id] == is_confirmed, "each decision about a tool's call is stored as one confirmation"
    pending = sorted(a.tool_call_id for a in seen.pending if a.tool_call_id)
    assert pending == sorted(c.id for c in seen.calls if c.status in {"asked", "unknown"}), (
        "each call that waits for people has a pending approval"
    )


def shown_is_decided_is_run(seen: Seen) -> None:
    """Also: all attempts at a call have the same input."""
    hashes = {call.id: call.input_sha256 for call in seen.calls}
    proposed = {key: digest(row.input if row.proposed_input is None else row.proposed_input) for key, row in seen.inputs.items()}
    for call in seen.calls:
        assert digest(seen.inputs[call.id].input) == call.input_sha256
    for approval in seen.approvals:
        assert canonical(json.loads(approval.input)).decode() == approval.input
        assert digest(json.loads(approval.input)) == approval.input_sha256
        if approval.tool_call_id is not None:
            shown = proposed if approval.kind == "tool_call" else hashes
            assert approval.input_sha256 == shown[approval.tool_call_id]
        if approval.kind == "tool_call" and approval.status == "allowed":
            assert approval.runs == hashes[approval.tool_call_id], "the decided input is the one that runs"
    assert all(attempt.input_sha256 == hashes[attempt.tool_call_id] for attempt in seen.attempts)


def nothing_runs_unasked(seen: Seen) -> None:
    allowed = {
        a.tool_call_id: a.decided_at
        for a in seen.approvals
        if a.kind == "tool_call" and a.status == "allowed" and a.decided_at and a.decided_at < a.expires_at
    }
    calls = {call.id: call for call in seen.calls}
    grants = {grant.id: grant for grant in seen.grants}
    for attempt in seen.attempts:
        call = calls[attempt.tool_call_id]
        assert call.permission != "deny"
        for grant in (grants[grant_id] for grant_id in call.grants or []):
            assert grant.created_at <= attempt.started_at, "it ran before it was granted"
            assert grant.revoked_at is None or grant.revoked_at >= attempt.started_at, "it ran after its grant was revoked"
        if call.permission == "ask":
            assert attempt.started_at >= allowed[call.id], "it ran before it was allowed"
    for call in seen.calls:
        if call.status in {"denied", "expired", "refused", "answered", "replaced", "asked"}:
            assert call.attempt == 0, f"a call that is {call.status} has run"
    for grant in seen.grants:
        used = sum(row.subject_id == grant.id for row in seen.audit if row.action == "grant.used")
        assert grant.uses == used or grant.scope == "always", "each use is in the audit"
        assert grant.max_uses is None or grant.uses <= grant.max_uses, "used more often than it may be"


def checkpoints_neither_fork_nor_skip(seen: Seen) -> None:
    assert [e.seq for e in seen.events] == list(range(1, seen.session.last_seq + 1)), "events are numbered without a gap"
    assert len({e.id for e in seen.events}) == len(seen.events)
    for thread in seen.threads:
        numbers = [turn.number for turn in seen.turns if turn.thread_id == thread.id]
        assert numbers == list(range(1, thread.turn_number + 1)), "turns are numbered without a gap"
    done = {turn.id for turn in seen.turns if turn.status == "done"}
    assert seen.replies.keys() == done, "a reply for each turn that is done, and for no other"
    texts = sum(any(block["type"] == "text" for block in reply) for reply in seen.replies.values())
    assert len(seen.of("agent.message")) == texts, "each reply is one message"
    begun = Counter(e.id for e in seen.of("span.model_request_start"))
    ended = Counter(e.body["model_request_start_id"] for e in seen.of("span.model_request_end"))
    running = {t.span_id for t in seen.turns if t.status == "running"}
    assert ended == Counter(set(begun) - running), "each attempt at a turn that began has ended once"
    results = Counter(
        e.body.get("tool_use_id") or e.body.get("custom_tool_use_id") or e.body["mcp_tool_use_id"]
        for e in seen.events
        if e.type in {"agent.tool_result", "agent.mcp_tool_result", "user.tool_result", "user.custom_tool_result"}
    )
    settled = [call for call in seen.calls if call.status in SETTLED]
    assert results == Counter(call.id for call in settled), "one result's event for each call that is settled"
    assert sorted(seen.results) == sorted(call.id for call in settled), "a result for each call that is settled, and for no other"


def runners_may_stop_at_idle(seen: Seen) -> None:
    if seen.session.status == "idle" and seen.turns:
        neutral = ("user.", "session.thread_status_terminated")  # a client may archive a thread of a session at rest
        last = [e for e in seen.events if not e.type.startswith(neutral)][-1]
        assert (last.type, last.body["stop_reason"]) == ("session.status_idle", seen.session.stop_reason), (
            "the last event says idle"
        )


def the_audit_chain_verifies(seen: Seen) -> None:
    head = GENESIS
    for number, row in enumerate(seen.audit, 1):
        head = link(head, row)
        assert (row.seq, row.hash) == (number, head), f"audit row {row.seq} is not chained"
    assert (seen.session.audit_seq, seen.session.audit_head) == (len(seen.audit), head)
    ran = Counter(row.subject_id for row in seen.audit if row.action == "tool_call.started")
    assert ran == Counter(attempt.tool_call_id for attempt in seen.attempts), "each attempt is in the audit"


def every_attempt_is_counted_once(seen: Seen) -> None:
    """Each ended request to a model is counted, and the sums of the session and of the days are those of the attempts."""
    ended = [event for event in seen.of("span.model_request_end") if any(event.body["model_usage"].values())]
    assert len({(usage.turn_id, usage.attempt) for usage in seen.usages}) == len(ended), "each ended attempt is counted once"
    assert {(turn.id, turn.attempt) for turn in seen.turns if turn.status == "done"} <= {
        (u.turn_id, u.attempt) for u in seen.usages
    }
    sums: dict[str, Any] = {}
    for usage in seen.usages:
        sums = summed(sums, usage.charge)
    assert seen.session.usage == sums, "the session's sum is that of its attempts"
    for thread in seen.threads:
        of_thread: dict[str, Any] = {}
        for usage in seen.usages:
            of_thread = summed(of_thread, usage.charge) if usage.thread_id == thread.id else of_thread
        assert thread.usage == of_thread, "a thread's sum is that of its attempts"
    assert seen.daily == seen.attempted, "the days' sums are those of the attempts"


def the_model_accepts_the_history(seen: Seen) -> None:
    """A session at rest may go on with a message. The stand-in refuses the requests that the real API refuses."""
    if seen.session.status == "idle":
        request = ModelRequest("stand-in", None, [*seen.messages, {"role": "user", "content": [NEXT]}], [], 1)
        parameters = params(request, "anthropic", compacts=True)
        parameters.pop("betas", None)  # the SDK sends it as a header
        check_request(parameters)
        check_pairs(parameters["messages"])


PROMISES = (
    something_moves_whatever_is_not_at_rest,
    one_attempt_unless_a_person_said_again,
    one_decision_per_approval,
    shown_is_decided_is_run,
    nothing_runs_unasked,
    checkpoints_neither_fork_nor_skip,
    runners_may_stop_at_idle,
    the_audit_chain_verifies,
    every_attempt_is_counted_once,
    the_model_accepts_the_history,
    *BETWEEN_THREADS,
)
