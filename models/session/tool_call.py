"""Tool calls: one effect each that the model proposed. A call's id is its event's id and its idempotency key."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.audit.principal import system
from models.audit.text import Text
from models.database import ids
from models.database.rows import Db, Stale
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.pure import masking, words
from models.pure.canonical import digest
from models.pure.git_writes import may_write_git
from models.pure.naming import OURS
from models.session import call_events
from models.session.attempt import Attempt
from models.session.call_events import OF_CLIENT
from models.session.call_input import CallInput
from models.session.call_result import CallResult
from models.session.session import Session
from models.settings import settings
from models.workspace.halt import is_halted
from models.workspace.toolset import OF_SESSION

CACHED = "cache IS NOT NULL AND status = 'done'"
"""What the index of results that may answer again is over."""


_WITH_CLIENT = "status = 'with_client' AND answer_by IS NOT NULL"


class ToolCall(Base):
    """One call. The states are in `models.pure.states.TOOL_CALL`."""

    __tablename__ = "tool_call"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str] = mapped_column(sa.ForeignKey("session.id"))
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
    input_sha256: Mapped[str]
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
        sa.Index("tool_call_of_session", "session_id", "turn_id", "position"),
        sa.Index("tool_call_queued", "queue", "due_at", postgresql_where=sa.text("status = 'queued'")),
        sa.Index("tool_call_with_client", "answer_by", postgresql_where=sa.text(_WITH_CLIENT)),
        sa.Index("tool_call_held", "workspace_id", postgresql_where=sa.text("status = 'held'")),
        sa.Index("tool_call_leased", "lease_until", postgresql_where=sa.text("status = 'running'")),
        sa.Index("tool_call_cached", "workspace_id", "input_sha256", "settled_at", postgresql_where=sa.text(CACHED)),
    )

    @classmethod
    def held(cls, db: Db, call_id: str, fence: int) -> "ToolCall":
        """The call that this fence still holds; raises Stale if it was taken, ended or settled."""
        call = db.get(cls, call_id)
        if call is None or call.status != "running" or call.fence != fence:
            raise Stale(f"tool_call {call_id} is no longer held by fence {fence}")
        return call

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

    def edit(self, db: Db, edited: dict[str, Any], secrets: list[str]) -> None:
        """Put a person's input in the place of the proposed one. `secrets` are those of both."""
        call_input = CallInput.of(db, self.id)
        call_input.proposed_input, call_input.input, call_input.secrets = call_input.input, edited, secrets or None
        self.input_sha256 = digest(edited)

    def replace(self, db: Db, session: Session, edited: dict[str, Any], shown: dict[str, Any], secrets: list[str]) -> None:
        """Settle a call whose event the client already has, and send another call with the edited input to the client.

        `shown` is the edited input with its secrets masked, `secrets` are those of both inputs.
        """
        proposed = CallInput.of(db, self.id).input
        self.settle(db, session, "replaced", text(words.replaced()), is_error=True)
        twin = ToolCall(
            id=ids.new("sevt"),
            input_sha256=digest(edited),
            permission="allow",
            status="held",
            due_at=session.now,
            created_at=session.now,
            **{name: getattr(self, name) for name in _OF_TWINS},
        )
        twin.put_input(db, input=edited, proposed_input=proposed, shown_input=shown, secrets=secrets or None)
        if not is_halted(db):
            twin.begin_with_client(db, session)
            twin.announce(db, session)
        twin.put(db, session)

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
        Attempt.begin(
            db,
            tool_call_id=self.id,
            number=self.attempt,
            workspace_id=self.workspace_id,
            session_id=self.session_id,
            worker=worker,
            input_sha256=self.input_sha256,
            started_at=session.now,
        )

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
        echoes = self.echoes(db)
        if self.status == "running":
            self.end_attempt(db, session, status)
        db.move(self, status, is_error=is_error, settled_at=session.now, lease_until=None, **changes)
        result = self._put_result(db, content, structured)
        self.announce(db, session)
        if not by_client:
            self._emit_result(db, session, result, echoes)

    def born_settled(self, db: Db, session: Session, content: list[dict[str, Any]]) -> None:
        """Give a result to a call that is proposed in a settled status: nobody is asked and nothing runs."""
        self.is_error, self.settled_at = True, session.now
        result = self._put_result(db, content)
        self.announce(db, session)
        self._emit_result(db, session, result, self.echoes(db))
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

    def echoes(self, db: Db) -> masking.Echoes:
        """The masked values that its result may hold: those of its own input and, if the call reads another call's result, of that
        call's input."""
        call_input = CallInput.of(db, self.id)
        secrets = list(call_input.secrets or ())
        if self.address == OURS + OF_SESSION and isinstance(read_id := call_input.input.get("call_id"), str):
            read = db.find(CallInput, _OF_SESSION, id=read_id, session=self.session_id)
            secrets += [secret for each in read for secret in each.secrets or ()]
        return masking.Echoes(secrets)

    def end_attempt(self, db: Db, session: Session, outcome: str) -> None:
        """Close the present attempt's row."""
        Attempt.end(db, self.id, self.attempt, session.now, outcome)

    def _put_result(self, db: Db, content: list[dict[str, Any]], structured: dict[str, Any] | None = None) -> CallResult:
        result = CallResult(tool_call_id=self.id, workspace_id=self.workspace_id, content=content, structured=structured)
        db.insert(result)
        return result

    def _emit_result(self, db: Db, session: Session, result: CallResult, echoes: masking.Echoes) -> None:
        kind, body = call_events.result(self, result, echoes)
        if self.cached_from:
            before = db.get_one(ToolCall, self.cached_from)
            assert before.settled_at, "a cached result is settled"
            body["cached"] = {"tool_use_id": before.id, "at": before.settled_at.isoformat()}
        session.emit(db, kind, body)


_OF_TWINS = (
    *("workspace_id", "session_id", "turn_id", "position", "provider_id"),
    *("name", "kind", "idempotent", "rule", "answer_seconds"),
)
_OF_TURN = "WHERE session_id = %(session)s AND turn_id = %(turn)s ORDER BY position"
_OF_SESSION = "WHERE tool_call_id = (SELECT id FROM tool_call WHERE id = %(id)s AND session_id = %(session)s)"


def text(words: str) -> list[dict[str, Any]]:
    """A result's content that is just words."""
    return [{"type": "text", "text": words}]
