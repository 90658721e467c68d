"""Tool calls: effects that the model proposes. A call's id is also its event's id and its idempotency key."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.audit.text import Text
from models.database.leased import Leased
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint
from models.pure import masking
from models.pure.policy.git_writes import may_write_git
from models.pure.times import rfc3339
from models.session.hints import CLAIMABLE, HELD_BACK, hint_of, hint_queued
from models.session.locked import Locked
from models.session.tool_call import events as call_events
from models.session.tool_call.attempt import Attempt
from models.session.tool_call.columns import ToolCallColumns
from models.session.tool_call.echoes import NO_ECHOES, echoes_of
from models.session.tool_call.events import OF_AGENTS, OF_CLIENT
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult, Result
from models.settings import settings
from models.workspace.halt import is_halted

CACHED = "cache IS NOT NULL AND status = 'done'"
"""The condition of the index of calls whose results may serve equal calls."""
_WITH_CLIENT = "status = 'with_client' AND answer_by IS NOT NULL"


class ToolCall(ToolCallColumns, Leased, Base):
    """A call: its verbs, and the queries that find it."""

    __tablename__ = "tool_call"
    TASK = "tool.run"
    """The task that works on a call. Acts of workers have it as their actor."""

    __table_args__ = (
        sa.Index("tool_call_of_turn", "turn_id"),
        sa.Index("tool_call_queued", "queue", "workspace_id", "due_at", postgresql_where=sa.text(CLAIMABLE)),
        sa.Index("tool_call_held_back", "queue", "due_at", postgresql_where=sa.text(HELD_BACK)),
        sa.Index("tool_call_with_client", "answer_by", postgresql_where=sa.text(_WITH_CLIENT)),
        sa.Index("tool_call_held", "workspace_id", postgresql_where=sa.text("status = 'held'")),
        sa.Index("tool_call_leased", "lease_until", postgresql_where=sa.text("status = 'running'")),
        sa.Index("tool_call_cached", "workspace_id", "input_sha256", "settled_at", postgresql_where=sa.text(CACHED)),
    )

    @classmethod
    def of_turn(cls, locked: Locked) -> list["ToolCall"]:
        """Return the calls of the thread's current turn, in order. Reads them once in a transaction."""
        thread, calls = locked.thread, locked.changes.calls
        if thread.id not in calls:
            calls[thread.id] = locked.db.find(cls, _OF_TURN, session=thread.session_id, turn=thread.turn_id)
        return calls[thread.id]

    def put(self, locked: Locked) -> None:
        """Insert the call, as the last of its turn."""
        ToolCall.of_turn(locked).append(self)
        locked.db.insert(self)

    def put_input(self, db: Db, **columns: Any) -> None:
        """Insert the call's input, before the call itself. `columns` are those of `CallInput`."""
        db.insert(CallInput(tool_call_id=self.id, workspace_id=self.workspace_id, **columns))

    def hint(self, agent_id: str) -> Hint:
        """Return the queue message that says this call of an agent may be ready."""
        return hint_of(self.TASK, (self.id, self.session_id, self.workspace_id, agent_id, self.name), self.queue)

    def hint_workers(self, locked: Locked) -> None:
        """Hint the queued call to the workers. A call about sub-agents needs none."""
        if self.kind != OF_AGENTS:
            hint_queued(locked.db, self.hint(locked.thread.agent_id))

    def until(self, now: datetime) -> datetime | None:
        """Return the client's deadline if the client gets the call now; None for no deadline."""
        return now + timedelta(seconds=self.answer_seconds) if self.answer_seconds else None

    def announce(self, locked: Locked, approval: Mapping[str, Any] | None = None, shown: dict[str, Any] | None = None) -> None:
        """Emit the call's event, once. `shown`: the input with its secrets masked if a person edited it, else None."""
        if self.announced:
            return
        self.announced = True
        locked.emit(call_events.use(self, CallInput.of(locked.db, self), shown, approval), id=self.id)

    def release(self, locked: Locked, shown: dict[str, Any] | None = None, **changes: Any) -> None:
        """Send an allowed call to the workers' queue, or to the client. `changes` are columns; `shown` is as for `announce`.

        While the workspace is halted, a client's call is held. The next step carries out a call about sub-agents.
        """
        db = locked.db
        if self.kind in OF_CLIENT:
            if is_halted(db):
                db.move(self, "held", **changes)
            else:
                self.deliver(locked, shown, **changes)
            return
        if self.status == "running":
            self.end_attempt(locked, "lost")
        self.requeue(db, locked.now, hinted_at=locked.now, **changes)
        self.hint_workers(locked)

    def deliver(self, locked: Locked, shown: dict[str, Any] | None = None, **changes: Any) -> None:
        """Send the call to the client, whose time begins now. The parameters are those of `release`."""
        locked.db.move(self, "with_client", answer_by=self.until(locked.now), deadline_from=locked.now, **changes)
        self.mark_session(locked)
        self.announce(locked, shown=shown)

    def ask_again(self, db: Db, rule: str) -> None:
        """Have people asked, because the earlier permission no longer holds. `rule` is the reason."""
        db.move(self, "asked", permission="ask", grants=None, rule=rule)

    def begin_with_client(self, locked: Locked) -> None:
        """Send a call that is not inserted yet to the client. The caller announces it."""
        self.status, self.answer_by, self.deadline_from = "with_client", self.until(locked.now), locked.now
        self.mark_session(locked)

    def claim(self, locked: Locked, worker: str, *, idempotent: bool, task: str | None) -> None:
        """Take the lease and insert the attempt's row. `idempotent`: whether the tool still is."""
        self.mark_session(locked)
        self.take_lease(
            locked.db,
            locked.now + timedelta(seconds=settings().lease_seconds),
            task,
            worker=worker,
            held_back=None,
            idempotent=idempotent,
        )
        Attempt.begin(locked.db, self, worker, locked.now)

    def mark_session(self, locked: Locked) -> None:
        """Set `Session.git_written` if this call, which may begin now, may write files from which git runs programs."""
        if not locked.session.git_written and may_write_git(self.name, CallInput.of(locked.db, self).input):
            locked.session.git_written = True

    def settle(self, locked: Locked, status: str, result: Result) -> None:
        """End the call with the result that the model gets, and emit the result's event, unless the client posted it."""
        echoes = NO_ECHOES if result.is_ours else echoes_of(locked.db, self)
        if self.status == "running":
            self.end_attempt(locked, status)
        self.cached_from = result.cached_from
        self.end_lease(locked.db, status, is_error=result.is_error, settled_at=locked.now)
        row = CallResult.put(locked.db, self, result)
        self.announce(locked)
        if not result.from_client:
            self._emit_result(locked, row, echoes)

    def born_settled(self, locked: Locked, result: Result) -> None:
        """Give a result to a call that is proposed in a settled status: nobody is asked and nothing runs."""
        self.is_error, self.settled_at = result.is_error, locked.now
        row = CallResult.put(locked.db, self, result)
        self.announce(locked)
        self._emit_result(locked, row, echoes_of(locked.db, self))
        self.note(locked, f"tool_call.{self.status}", rule=Text(self.rule))

    def park(self, locked: Locked, question: dict[str, Any]) -> None:
        """End this attempt with the tool's questions. The next attempt brings the answers."""
        self.end_attempt(locked, "asked")
        self.end_lease(locked.db, "asked")
        call_input = CallInput.of(locked.db, self)
        call_input.question, call_input.answers = question, None

    def put_back(self, locked: Locked) -> None:
        """Queue the call again, because the attempt did not begin. Sends no hint: the caller says when the next attempt is due."""
        self.end_attempt(locked, "not_begun")
        self.requeue(locked.db, locked.now, hinted_at=locked.now)

    def become_unknown(self, locked: Locked) -> None:
        """Set the status `unknown`: the call began, or may have begun after a backup, and nobody knows how it ended."""
        if self.status == "running":
            self.end_attempt(locked, "unknown")
        self.end_lease(locked.db, "unknown")

    def end_attempt(self, locked: Locked, outcome: str) -> None:
        """Record the end of the present attempt."""
        Attempt.end(locked.db, self, locked.now, outcome)

    def note(self, locked: Locked, act: str, **facts: Any) -> None:
        """Append an act about the call to the session's audit chain, whichever thread is at hand."""
        locked.at(self).note(act, self.id, **facts)

    def _emit_result(self, locked: Locked, result: CallResult, echoes: masking.Echoes) -> None:
        cached: call_events.Cached | None = None
        if self.cached_from:
            before = locked.db.get_one(ToolCall, self.cached_from)
            assert before.settled_at, "a cached result is settled"
            cached = {"tool_use_id": before.id, "at": rfc3339(before.settled_at)}
        content, structured = echoes.value(result.content), echoes.value(result.structured)
        is_error = bool(self.is_error)
        locked.emit(call_events.result(self, content, is_error=is_error, structured=structured, cached=cached))


_OF_TURN = "WHERE session_id = %(session)s AND turn_id = %(turn)s ORDER BY position"
