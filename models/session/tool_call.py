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
    input: Mapped[dict[str, Any]] = mapped_column(JSONB(none_as_null=True))
    input_sha256: Mapped[str]
    permission: Mapped[str]
    rule: Mapped[str]
    grants: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """The grants that allowed it; they are looked at again when it is claimed."""
    asking: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """How people would be asked about a call that was allowed before anybody was, and may have to be: `ruling.Asking`."""
    proposed_input: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """What the model wanted, where a person changed `input`."""
    shown_input: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The proposed input with its secrets masked; None if it has none."""
    secrets: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    """The texts that are masked in its inputs and long enough to be found again, for masking them in what comes from the call."""
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
    result: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    is_error: Mapped[bool | None]
    structured: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The result as data, where the tool gave any; for clients, not for the model."""
    question: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """What the tool must be told before it can go on: `{"requests": {key: {...}}, "state": str | None}`."""
    answers: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """What a person said to it, by key."""
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
        """Insert it behind the calls of its turn."""
        ToolCall.of_turn(db, session).append(self)
        db.insert(self)

    @property
    def hint(self) -> Hint:
        """The queue message that says this call may be ready."""
        return Hint("tool.run", (self.id, self.session_id, self.workspace_id), self.queue)

    def until(self, session: Session) -> datetime | None:
        """When a client that is given it now must have answered."""
        return session.now + timedelta(seconds=self.answer_seconds) if self.answer_seconds else None

    def announce(
        self, db: Db, session: Session, approval: dict[str, Any] | None = None, shown: dict[str, Any] | None = None
    ) -> None:
        """Emit the call's event, once. `shown` is an edited input with its secrets masked; None if nobody edited it."""
        if self.announced:
            return
        self.announced = True
        kind, body = call_events.use(self, shown if shown is not None else self.shown_input)
        session.emit(db, kind, body | ({"approval": approval} if approval else {}), id=self.id)

    def release(self, db: Db, session: Session, shown: dict[str, Any] | None = None, **changed: Any) -> None:
        """Allowed: to the workers' queue, or to the client. `changed` is what was changed about it, `shown` as for `announce`."""
        if self.kind in OF_CLIENT and is_halted(db):
            db.move(self, "held", **changed)
            return
        if self.kind in OF_CLIENT:
            self.deliver(db, session, shown, **changed)
            return
        if self.status == "running":
            self.end_attempt(db, session, "lost")
        db.move(self, "queued", due_at=session.now, hinted_at=session.now, lease_until=None, **changed)
        outbox(db).hints.append(self.hint)

    def deliver(self, db: Db, session: Session, shown: dict[str, Any] | None = None, **changed: Any) -> None:
        """Give it to the client, whose time begins now. The parameters are those of `release`."""
        db.move(self, "with_client", answer_by=self.until(session), deadline_from=session.now, **changed)
        self.mark_session(session)
        self.announce(db, session, shown=shown)

    def ask_again(self, db: Db, rule: str) -> None:
        """The call may not run on the word that had allowed it: a person is needed, as `rule` says."""
        db.move(self, "asked", permission="ask", grants=None, rule=rule)

    def replace(self, db: Db, session: Session, edited: dict[str, Any], shown: dict[str, Any], secrets: list[str]) -> None:
        """The client has seen this call's event already: settle it, and let another call with the edited input go to the client.

        `shown` is the edited input with its secrets masked, `secrets` are those of both inputs.
        """
        db.move(self, "replaced", is_error=True, result=text(words.replaced()), settled_at=session.now)
        self.emit_result(db, session)
        twin = ToolCall(
            id=ids.new("sevt"),
            input=edited,
            input_sha256=digest(edited),
            proposed_input=self.input,
            shown_input=shown,
            secrets=secrets or None,
            permission="allow",
            status="held",
            due_at=session.now,
            created_at=session.now,
            **{name: getattr(self, name) for name in _OF_TWINS},
        )
        if not is_halted(db):
            twin.begin_with_client(session)
            twin.announce(db, session)
        twin.put(db, session)

    def begin_with_client(self, session: Session) -> None:
        """Have a call that is not stored yet go to the client at once."""
        self.status, self.answer_by, self.deadline_from = "with_client", self.until(session), session.now
        self.mark_session(session)

    def claim(self, db: Db, session: Session, worker: str, *, idempotent: bool) -> None:
        """Take the lease and commit the attempt's row before the effect. `idempotent`: whether it still is."""
        self.mark_session(session)
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

    def mark_session(self, session: Session) -> None:
        """It may begin from now on: the session remembers if it may write files from which git runs programs."""
        if not session.git_written and may_write_git(self.name, self.input):
            session.git_written = True

    def settle(
        self,
        db: Db,
        session: Session,
        status: str,
        content: list[dict[str, Any]],
        *,
        is_error: bool,
        by_client: bool = False,
        **more: Any,
    ) -> None:
        """Its end, with the result that the model gets, and the result's event (the client's own, when the client posted it).

        `more` is what else is known of the result: `structured`, `cached_from`.
        """
        if self.status == "running":
            self.end_attempt(db, session, status)
        db.move(self, status, result=content, is_error=is_error, settled_at=session.now, lease_until=None, **more)
        self.announce(db, session)
        if not by_client:
            self.emit_result(db, session)

    def born_settled(self, db: Db, session: Session, content: list[dict[str, Any]]) -> None:
        """A call that was proposed in a status that settles it: nobody is asked, nothing runs, the model is told."""
        self.result, self.is_error, self.settled_at = content, True, session.now
        self.announce(db, session)
        self.emit_result(db, session)
        session.note(system("turn.run", self.workspace_id), f"tool_call.{self.status}", self.id, rule=Text(self.rule))

    def park(self, db: Db, session: Session, question: dict[str, Any]) -> None:
        """The tool must be told something before it can go on: this attempt is over, and the next one brings the answers."""
        self.end_attempt(db, session, "asked")
        db.move(self, "asked", question=question, answers=None, lease_until=None)

    def become_unknown(self, db: Db, session: Session) -> None:
        """It began, and nobody can say how it ended."""
        self.end_attempt(db, session, "unknown")
        db.move(self, "unknown", lease_until=None)

    def emit_result(self, db: Db, session: Session) -> None:
        """The result's event, as runners look for it."""
        kind, body = call_events.result(self, self.echoes(db))
        if self.cached_from:
            before = db.get_one(ToolCall, self.cached_from)
            assert before.settled_at, "what is cached is done"
            body["cached"] = {"tool_use_id": before.id, "at": before.settled_at.isoformat()}
        session.emit(db, kind, body)

    def echoes(self, db: Db) -> masking.Echoes:
        """The masked values that its result may hold: of its own input and, if it reads another call's result, of that input."""
        secrets = list(self.secrets or ())
        if self.address == OURS + OF_SESSION and isinstance(read := self.input.get("call_id"), str):
            found = db.find(ToolCall, "WHERE id = %(id)s AND session_id = %(session)s", id=read, session=self.session_id)
            secrets += [secret for call in found for secret in call.secrets or ()]
        return masking.Echoes(secrets)

    def end_attempt(self, db: Db, session: Session, outcome: str) -> None:
        """Close the present attempt's row."""
        Attempt.end(db, self.id, self.attempt, session.now, outcome)


_OF_TWINS = (
    *("workspace_id", "session_id", "turn_id", "position", "provider_id"),
    *("name", "kind", "idempotent", "rule", "answer_seconds"),
)
_OF_TURN = "WHERE session_id = %(session)s AND turn_id = %(turn)s ORDER BY position"


def text(words: str) -> list[dict[str, Any]]:
    """A result's content that is just words."""
    return [{"type": "text", "text": words}]
