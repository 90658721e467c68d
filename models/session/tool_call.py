"""Tool calls: one effect each that the model proposed. A call's id is its event's id and its idempotency key."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.audit.principal import system
from models.audit.text import Text
from models.database.leased import Leased
from models.database.rows import Db
from models.database.tables import Base, Hex
from models.database.transactions import Hint, outbox
from models.pure import masking
from models.pure.git_writes import may_write_git
from models.session import call_events
from models.session.attempt import Attempt
from models.session.call_echoes import echoes_of
from models.session.call_events import OF_CLIENT
from models.session.call_input import CallInput
from models.session.call_result import CallResult
from models.session.session import Session
from models.settings import settings
from models.workspace.halt import is_halted

CACHED = "cache IS NOT NULL AND status = 'done'"
"""Selects the rows of the index of results that may answer the same call again."""
_WITH_CLIENT = "status = 'with_client' AND answer_by IS NOT NULL"
BUDGET = "budget"
"""The kind of call that only asks people to raise a session's budget. Nothing runs, and neither clients nor the model see it."""


class ToolCall(Leased, Base):
    """One call. The states are in `models.pure.states.TOOL_CALL`."""

    __tablename__ = "tool_call"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    """The turn's."""
    turn_id: Mapped[str] = mapped_column(sa.ForeignKey("turn.id"))
    position: Mapped[int]
    """Among the calls of its turn, from 0: results go back in this order."""
    provider_id: Mapped[str]
    name: Mapped[str]
    kind: Mapped[str]
    """`builtin`: our workers run it. `custom`: the client does. `self_hosted`: of the toolset, and the client's own worker does.
    `mcp`: of a toolset of the operator's, or of an MCP server; our workers run it or ask the server."""
    server: Mapped[str | None]
    """Of an `mcp` call, as the next three: the agent's name for its server."""
    address: Mapped[str | None]
    """Where that is, as `models.workspace.toolset` has it."""
    tool: Mapped[str | None]
    """The tool's own name there; `name` is the one that the model uses."""
    queue: Mapped[str | None]
    """Of the workers that can run it; None: `tools`."""
    workdir: Mapped[bool] = mapped_column(default=True, server_default=sa.true())
    """Whether it works on the session's files, and so only where these are."""
    input_sha256: Mapped[str] = mapped_column(Hex)
    """The hash of what may run: `CallInput.input`."""
    permission: Mapped[str]
    rule: Mapped[str]
    grants: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """The grants that allowed it; they are looked at again when it is claimed."""
    idempotent: Mapped[bool]
    cache: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """For how long its result may answer the same call again, and whose: `Origin.cache`."""
    cached_from: Mapped[str | None]
    """The call whose result this one was given."""
    announced: Mapped[bool] = mapped_column(default=False)
    """Whether its event is out; a client's call that is asked is withheld until it is allowed."""
    status: Mapped[str]
    fence: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    worker: Mapped[str | None]
    answer_seconds: Mapped[float | None]
    """How long its client may take for it."""
    answer_by: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When it is given up on, since it is with the client."""
    deadline_from: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When `answer_by` began to run: halts that ended later move it."""
    due_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    hinted_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    held_back: Mapped[str | None]
    """Why a worker that could have claimed it left it; readiness says so."""
    cancel_requested_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    is_error: Mapped[bool | None]
    """Of the result, which `CallResult` has."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    settled_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (
        sa.Index("tool_call_of_turn", "turn_id"),
        sa.Index("tool_call_queued", "queue", "due_at", postgresql_where=sa.text("status = 'queued'")),
        sa.Index("tool_call_with_client", "answer_by", postgresql_where=sa.text(_WITH_CLIENT)),
        sa.Index("tool_call_held", "workspace_id", postgresql_where=sa.text("status = 'held'")),
        sa.Index("tool_call_leased", "lease_until", postgresql_where=sa.text("status = 'running'")),
        sa.Index("tool_call_cached", "workspace_id", "input_sha256", "settled_at", postgresql_where=sa.text(CACHED)),
    )

    @classmethod
    def of_turn(cls, db: Db, session: Session) -> list["ToolCall"]:
        """The calls of the session's current turn, in order; read once in a transaction."""
        if session.calls is None:
            session.calls = db.find(cls, _OF_TURN, session=session.id, turn=session.turn_id)
        return session.calls

    def put(self, db: Db, session: Session) -> None:
        """Insert the call behind the other calls of its turn."""
        ToolCall.of_turn(db, session).append(self)
        db.insert(self)

    def put_input(self, db: Db, **columns: Any) -> None:
        """Insert the call's input, before the call itself. `columns` are those of `CallInput`."""
        db.insert(CallInput(tool_call_id=self.id, workspace_id=self.workspace_id, **columns))

    @property
    def hint(self) -> Hint:
        """The queue message that says this call may be ready."""
        return Hint("tool.run", (self.id, self.session_id, self.workspace_id), self.queue)

    def until(self, session: Session) -> datetime | None:
        """The client's deadline, if the client gets the call now."""
        return session.now + timedelta(seconds=self.answer_seconds) if self.answer_seconds else None

    def announce(
        self, db: Db, session: Session, approval: dict[str, Any] | None = None, shown: dict[str, Any] | None = None
    ) -> None:
        """Emit the call's event, once. `shown` is an edited input with its secrets masked; None if nobody edited it."""
        if self.announced:
            return
        self.announced = True
        kind, body = call_events.use(self, CallInput.of(db, self.id), shown)
        session.emit(db, kind, body | ({"approval": approval} if approval else {}), id=self.id)

    def release(self, db: Db, session: Session, shown: dict[str, Any] | None = None, **changes: Any) -> None:
        """Send an allowed call to the workers' queue, or to the client. `changes` are columns; `shown` is as for `announce`.

        While the workspace is halted, a client's call is held.
        """
        if self.kind in OF_CLIENT and is_halted(db):
            db.move(self, "held", **changes)
            return
        if self.kind in OF_CLIENT:
            self.deliver(db, session, shown, **changes)
            return
        if self.status == "running":
            self.end_attempt(db, session, "lost")
        db.move(self, "queued", due_at=session.now, hinted_at=session.now, lease_until=None, **changes)
        outbox(db).hints.append(self.hint)

    def deliver(self, db: Db, session: Session, shown: dict[str, Any] | None = None, **changes: Any) -> None:
        """Send the call to the client, whose time begins now. The parameters are those of `release`."""
        db.move(self, "with_client", answer_by=self.until(session), deadline_from=session.now, **changes)
        self.mark_session(db, session)
        self.announce(db, session, shown=shown)

    def ask_again(self, db: Db, rule: str) -> None:
        """Require a person: the earlier permission holds no longer, and `rule` says why."""
        db.move(self, "asked", permission="ask", grants=None, rule=rule)

    def begin_with_client(self, db: Db, session: Session) -> None:
        """Send a call that is not inserted yet to the client at once."""
        self.status, self.answer_by, self.deadline_from = "with_client", self.until(session), session.now
        self.mark_session(db, session)

    def claim(self, db: Db, session: Session, worker: str, *, idempotent: bool) -> None:
        """Take the lease and commit the attempt's row before the effect. `idempotent`: whether the tool still is."""
        self.mark_session(db, session)
        db.move(
            self,
            "running",
            fence=self.fence + 1,
            attempt=self.attempt + 1,
            lease_until=session.now + timedelta(seconds=settings().lease_seconds),
            worker=worker,
            held_back=None,
            idempotent=idempotent,
        )
        Attempt.begin(db, self, worker, session.now)

    def mark_session(self, db: Db, session: Session) -> None:
        """Record on the session that this call, which may begin now, may write files from which git runs programs."""
        if not session.git_written and may_write_git(self.name, CallInput.of(db, self.id).input):
            session.git_written = True

    def settle(
        self,
        db: Db,
        session: Session,
        status: str,
        content: list[dict[str, Any]],
        *,
        is_error: bool,
        structured: dict[str, Any] | None = None,
        by_client: bool = False,
        **changes: Any,
    ) -> None:
        """End the call with the result that the model gets, and emit the result's event, unless the client posted it.

        `structured` is the result as data; `changes` are further columns.
        """
        echoes = echoes_of(db, self)
        if self.status == "running":
            self.end_attempt(db, session, status)
        db.move(self, status, is_error=is_error, settled_at=session.now, lease_until=None, **changes)
        result = CallResult.put(db, self, content, structured)
        self.announce(db, session)
        if not by_client:
            self._emit_result(db, session, result, echoes)

    def born_settled(self, db: Db, session: Session, content: list[dict[str, Any]]) -> None:
        """Give a result to a call that is proposed in a settled status: nobody is asked and nothing runs."""
        self.is_error, self.settled_at = True, session.now
        result = CallResult.put(db, self, content)
        self.announce(db, session)
        self._emit_result(db, session, result, echoes_of(db, self))
        session.note(system("turn.run", self.workspace_id), f"tool_call.{self.status}", self.id, rule=Text(self.rule))

    def park(self, db: Db, session: Session, question: dict[str, Any]) -> None:
        """End this attempt with the tool's question; the next attempt brings the answers."""
        self.end_attempt(db, session, "asked")
        db.move(self, "asked", lease_until=None)
        call_input = CallInput.of(db, self.id)
        call_input.question, call_input.answers = question, None

    def become_unknown(self, db: Db, session: Session) -> None:
        """The call began, and nobody knows how it ended."""
        self.end_attempt(db, session, "unknown")
        db.move(self, "unknown", lease_until=None)

    def end_attempt(self, db: Db, session: Session, outcome: str) -> None:
        """Close the present attempt's row."""
        Attempt.end(db, self.id, self.attempt, session.now, outcome)

    def _emit_result(self, db: Db, session: Session, result: CallResult, echoes: masking.Echoes) -> None:
        if self.kind == BUDGET:
            return
        kind, body = call_events.result(self, result, echoes)
        if self.cached_from:
            before = db.get_one(ToolCall, self.cached_from)
            assert before.settled_at, "a cached result is settled"
            body["cached"] = {"tool_use_id": before.id, "at": before.settled_at.isoformat()}
        session.emit(db, kind, body)


_OF_TURN = "WHERE session_id = %(session)s AND turn_id = %(turn)s ORDER BY position"
