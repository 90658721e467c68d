"""Approvals: the question put to people, what they were shown, and the one decision that it gets."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models import ids
from models.db import Base, Db
from models.errors import Conflict
from models.principal import Principal
from models.pure.canonical import spelled
from models.session import Session
from models.tool_call import ToolCall
from models.writes import insert, move


@dataclass(frozen=True)
class Decision:
    """A person's answer, as any door takes it."""

    result: Literal["allow", "deny"] | None = None
    deny_message: str | None = None
    interrupt: bool = False
    """With deny: the run ends."""
    outcome: Literal["rerun", "happened", "give_up"] | None = None
    """For a call whose outcome is unknown, instead of `result`."""
    content: tuple[dict[str, Any], ...] = ()
    """With `happened`: the result, as content blocks."""
    expected_input_sha256: str | None = None

    @property
    def said(self) -> dict[str, Any]:
        """What was decided, without how it was guarded: equal for a repeated decision."""
        kept = {k: v for k, v in asdict(self).items() if v and k != "expected_input_sha256"}
        return kept | {"content": list(self.content)} if self.content else kept


class DeadlinePassed(Conflict):
    """The decision came too late. Its transaction did nothing; `models.flow.expire_due` then writes the expiry."""

    def __init__(self, approval: "Approval") -> None:
        self.workspace_id, self.session_id = approval.workspace_id, approval.session_id
        message = f"Approval {approval.id} expired at {approval.expires_at.isoformat()}: the call was not run."
        super().__init__(message, {"status": "expired"})


class Approval(Base):
    """One question about one call. The states are in `models.pure.states.APPROVAL`."""

    __tablename__ = "approval"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str] = mapped_column(sa.ForeignKey("session.id"))
    tool_call_id: Mapped[str] = mapped_column(sa.ForeignKey("tool_call.id"))
    kind: Mapped[str]
    """`tool_call`: may it run? `unknown_outcome`: it began; what became of it?"""
    status: Mapped[str] = mapped_column(default="pending")
    tool: Mapped[str]
    prompt: Mapped[str]
    input: Mapped[str]
    """The canonical input (RFC 8785) that is shown."""
    input_sha256: Mapped[str]
    rule: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    decision: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    event_id: Mapped[str | None]
    """The `user.tool_confirmation` that the decision was stored as."""

    __table_args__ = (
        sa.Index("approval_of_call", "tool_call_id"),
        sa.Index("approval_of_session", "session_id", postgresql_where=sa.text("status = 'pending'")),
        sa.Index("approval_due", "expires_at", postgresql_where=sa.text("status = 'pending'")),
        sa.Index("approval_inbox", "workspace_id", "created_at", "id"),
    )

    @classmethod
    def ask(cls, session: Session, call: ToolCall, *, kind: str, prompt: str, seconds: float) -> "Approval":
        """The question, to be inserted behind its call; people can decide it until the deadline."""
        return cls(
            id=ids.new("appr"),
            workspace_id=session.workspace_id,
            session_id=session.id,
            tool_call_id=call.id,
            kind=kind,
            tool=call.name,
            prompt=prompt,
            input=spelled(call.input),
            input_sha256=call.input_sha256,
            rule=call.rule,
            created_at=session.now,
            expires_at=session.now + timedelta(seconds=seconds),
        )

    @classmethod
    def of_call(cls, db: Db, call_id: str) -> list["Approval"]:
        """All questions that a call ever raised, the first first."""
        return list(db.scalars(sa.select(cls).where(cls.tool_call_id == call_id).order_by(cls.created_at, cls.id)))

    @classmethod
    def pending(cls, db: Db, session_id: str) -> list["Approval"]:
        """What the session waits for people to decide."""
        found = sa.select(cls).where(cls.session_id == session_id, cls.status == "pending").order_by(cls.created_at, cls.id)
        return list(db.scalars(found))

    def shown(self) -> dict[str, Any]:
        """What the call's event says of it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "expires_at": self.expires_at.isoformat(),
            "input_sha256": self.input_sha256,
            "prompt": self.prompt,
            "rule": self.rule,
        }

    def put(self, db: Db, session: Session, principal: Principal) -> None:
        """Insert it and say that it was asked: an event for who asks for approvals, and the audit."""
        insert(db, self)
        session.emit(
            db,
            "approval.requested",
            self.shown() | {"approval_id": self.id, "tool_use_id": self.tool_call_id, "tool": self.tool},
        )
        session.note(
            principal,
            "approval.requested",
            self.id,
            tool_call=self.tool_call_id,
            input_sha256=self.input_sha256,
            rule=self.rule,
        )

    def close(self, db: Db, session: Session, principal: Principal, status: str, decision: Decision) -> str:
        """Its end, with the confirmation that runners wait for. Returns the confirmation's event id."""
        result = decision.result or ("deny" if decision.outcome == "give_up" else "allow")
        body: dict[str, Any] = {
            "tool_use_id": self.tool_call_id,
            "result": result,
            "approval_id": self.id,
            "decided_by": str(principal),
        }
        body |= {k: v for k, v in decision.said.items() if k not in {"result", "content"}}
        event_id = session.emit(db, "user.tool_confirmation", body).id
        move(
            db,
            self,
            status,
            decision=decision.said,
            decided_by=str(principal),
            decided_at=session.now,
            event_id=event_id,
        )
        kind = status if status in {"expired", "cancelled"} else "decided"
        told = {
            "approval_id": self.id,
            "tool_use_id": self.tool_call_id,
            "status": status,
            "decided_by": str(principal),
        }
        session.emit(db, f"approval.{kind}", told)
        session.note(principal, f"approval.{kind}", self.id, status=status, input_sha256=self.input_sha256, **decision.said)
        return event_id
