"""Approvals: the question put to people, what they were shown, and the one decision that it gets."""

import json
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.audit.principal import Principal
from models.audit.text import Text
from models.database import ids
from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import outbox
from models.errors import Conflict
from models.policy.asking import Asking
from models.pure import masking
from models.pure.canonical import digest, spelled
from models.pure.quorum import Quorum
from models.session import confirmation
from models.session.call_input import CallInput
from models.session.decision import Decision
from models.session.evidence import SHOWN_WITH_FILES, look_hint
from models.session.session import Session
from models.session.tool_call import ToolCall
from models.session.vote import Vote

_PENDING = "status = 'pending'"


class DeadlinePassed(Conflict):
    """The decision came too late. Its transaction did nothing; `models.flow.too_late` then lets the deadline do what it does."""

    def __init__(self, approval: "Approval") -> None:
        self.workspace_id, self.session_id, self.approval_id = approval.workspace_id, approval.session_id, approval.id
        message = f"The deadline of approval {approval.id}, {approval.expires_at.isoformat()}, has passed: nothing was decided."
        super().__init__(message, {"status": "expired"})


class Approval(Base):
    """One question about one call. The states are in `models.pure.states.APPROVAL`."""

    __tablename__ = "approval"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str] = mapped_column(sa.ForeignKey("session.id"))
    tool_call_id: Mapped[str] = mapped_column(sa.ForeignKey("tool_call.id"))
    kind: Mapped[str]
    """`tool_call`: may it run? `unknown_outcome`: it began; what became of it? `question`: it wants to know something."""
    status: Mapped[str] = mapped_column(default="pending")
    tool: Mapped[str]
    prompt: Mapped[str]
    agent_id: Mapped[str | None]
    """The session's, so that what a grant may release is found at once."""
    input: Mapped[str]
    """The canonical input (RFC 8785) that is decided about; people see it with its secrets masked."""
    input_schema: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """What an edited input must fit: the tool's schema as it was when the call was proposed."""
    input_sha256: Mapped[str]
    rule: Mapped[str]
    annotations: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """What the tool's own side says of what it does: `Asking.annotations`."""
    questions: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Of kind `question`: `{key: {"message": str, "schema": {...} | "url": str}}`."""
    leads_to: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """By JSON Pointer, where paths in the input lead by symbolic links, if that is why it is asked; allowing it allows no other."""
    attempt_told: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Of kind `unknown_outcome`: what is known of the attempt, `{"number", "worker", "started_at", "output"}`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    deadline_from: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    """When the present deadline began to run: halts that ended later move it."""
    on_timeout: Mapped[str] = mapped_column(default="deny")
    """What the deadline does: `deny`, `end_run`, `escalate` or `allow`."""
    quorum: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Who must approve: `Quorum.kept`. Null: one person or API key."""
    escalation: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """With `on_timeout` escalate: `Escalation.kept`."""
    level: Mapped[int] = mapped_column(default=0, server_default="0")
    """How often it was escalated."""
    started_by: Mapped[list[str]] = mapped_column(ARRAY(sa.Text), server_default="{}")
    """The session's `speakers` when it was asked: with four eyes they may not decide."""
    remind_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When people are to be reminded; None once they were, or are not to be."""
    reminded_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    decided_input: Mapped[str | None]
    """The canonical input that a person put in the place of the proposed one."""
    decided_shown: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The same with its secrets masked: markers that the person left are markers still."""
    decided_sha256: Mapped[str | None]
    """Its hash: then this is what may run, and nothing else."""
    decision: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    event_id: Mapped[str | None]
    """The `user.tool_confirmation` that the decision was stored as."""

    __table_args__ = (
        sa.Index("approval_of_call", "tool_call_id"),
        sa.Index("approval_of_session", "session_id", postgresql_where=sa.text(_PENDING)),
        sa.Index("approval_due", "expires_at", postgresql_where=sa.text(_PENDING)),
        sa.Index("approval_to_remind", "remind_at", postgresql_where=sa.text(f"{_PENDING} AND remind_at IS NOT NULL")),
        sa.Index("approval_waiting_of_agent", "agent_id", "tool", postgresql_where=sa.text(f"{_PENDING} AND kind = 'tool_call'")),
        sa.Index("approval_inbox", "workspace_id", "created_at", "id"),
        sa.Index("approval_queue", "workspace_id", "expires_at", "id", postgresql_where=sa.text(_PENDING)),
    )

    @classmethod
    def ask(cls, db: Db, session: Session, call: ToolCall, asking: Asking, *, kind: str = "tool_call", **told: Any) -> "Approval":
        """The question, to be inserted behind its call; people can decide it until the deadline.

        `told`: what people are shown beside, `questions` or `attempt_told`.
        """
        remind = asking.remind_after_seconds
        return cls(
            id=ids.new("appr"),
            workspace_id=session.workspace_id,
            session_id=session.id,
            agent_id=session.agent_id,
            tool_call_id=call.id,
            kind=kind,
            tool=call.name,
            prompt=asking.prompt,
            input=spelled(CallInput.of(db, call.id).input),
            input_schema=asking.input_schema,
            input_sha256=call.input_sha256,
            rule=call.rule,
            annotations=asking.annotations,
            **told,
            created_at=session.now,
            expires_at=session.now + timedelta(seconds=asking.seconds),
            deadline_from=session.now,
            on_timeout=asking.on_timeout,
            quorum=asking.quorum,
            escalation=asking.escalation,
            level=0,
            started_by=list(session.speakers),
            remind_at=session.now + timedelta(seconds=remind) if remind and remind < asking.seconds else None,
        )

    def again(self, db: Db, session: Session, call: ToolCall, quorum: Quorum) -> "Approval":
        """The same question once more, with as much time and the same reminder. `quorum` holds as well as the one before."""
        seconds = (self.expires_at - self.created_at).total_seconds()
        at = self.remind_at or self.reminded_at
        remind = (at - self.created_at).total_seconds() if at else None
        asking = Asking(
            self.prompt,
            seconds,
            self.on_timeout,  # type: ignore[arg-type]  # a column
            remind,
            self.input_schema,
            annotations=self.annotations,
            quorum=Quorum.of(self.quorum).and_also(quorum).kept,
            escalation=self.escalation,
        )
        return Approval.ask(db, session, call, asking)

    def tighten(self, quorum: Quorum) -> None:
        """Have a quorum hold as well, which was configured since it was asked."""
        tightened = Quorum.of(self.quorum).and_also(quorum).kept
        if tightened != self.quorum:
            self.quorum = tightened

    @classmethod
    def of_call(cls, db: Db, call_id: str) -> list["Approval"]:
        """All questions that a call ever raised, the first first."""
        return sorted(db.read(cls.about(call_id))[0], key=cls.age)

    @classmethod
    def about(cls, call_id: str) -> "Query[Approval]":
        """Asks for these, in no order: with one, a young database may read all of the workspace's in that order instead."""
        return select(cls, "WHERE tool_call_id = %(call)s", call=call_id)

    def age(self) -> tuple[datetime, str]:
        """The key by which approvals sort, oldest first."""
        return self.created_at, self.id

    @classmethod
    def pending(cls, db: Db, session_id: str) -> list["Approval"]:
        """What the session waits for people to decide."""
        of = "WHERE session_id = %(session)s AND status = 'pending' ORDER BY created_at, id"
        return db.find(cls, of, session=session_id)

    @classmethod
    def mark(cls, db: Db) -> str:
        """A text that changes when an approval of the workspace is added, or one of those that are due next is decided or moved."""
        return str(db.value(_MARK))

    @property
    def told(self) -> dict[str, Any]:
        """What the call's event says of it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "expires_at": self.expires_at.isoformat(),
            "input_sha256": self.input_sha256,
            "prompt": self.prompt,
            "rule": self.rule,
            **self.demands,
            "votes": [],
        } | ({"annotations": self.annotations} if self.annotations else {})

    @property
    def demands(self) -> dict[str, Any]:
        """Who may decide, as events and answers say it."""
        quorum = Quorum.of(self.quorum)
        return {
            "required_approvals": quorum.required,
            "approvers": [list(one) for one in quorum.approvers],
            "four_eyes": quorum.four_eyes,
            "people_only": quorum.needs_people,
            "started_by": [f"user:{person_id}" for person_id in self.started_by],
        }

    def standing(self, db: Db) -> dict[str, Any]:
        """Who may decide, and the votes so far."""
        return self.demands | {"votes": [vote.summary for vote in Vote.of(db, [self.id])[self.id]]}

    @property
    def masked(self) -> masking.Masked:
        """The input as people see it: made from what would run, whenever it is looked at."""
        return masking.mask(json.loads(self.input), self.input_schema)

    @property
    def runs(self) -> str:
        """The hash of what may run once it is allowed."""
        return self.decided_sha256 or self.input_sha256

    @property
    def by_person(self) -> bool:
        """True if a person or a key decided it, not a deadline, a sweep or a grant."""
        return not (self.decided_by or "system:").startswith(("system:", "grant:"))

    @property
    def by_deadline(self) -> bool:
        """True if its deadline decided it."""
        return (self.decided_by or "").startswith("system:")

    def lets_run(self, input_sha256: str) -> bool:
        """True if it lets a call with this input run: allowed or, after an unknown outcome, to be run again."""
        allowed = self.kind == "tool_call" and self.status == "allowed"
        rerun = self.kind == "unknown_outcome" and self.status == "answered" and (self.decision or {}).get("outcome") == "rerun"
        return (allowed or rerun) and self.runs == input_sha256

    @property
    def echoes(self) -> masking.Echoes:
        """The values that are masked in its inputs, to be masked in all else that it shows."""
        decided = masking.mask(json.loads(self.decided_input), self.input_schema).hidden if self.decided_input else ()
        return masking.Echoes([*self.masked.hidden, *decided])

    def unedit(self) -> None:
        """A person put the proposed input back."""
        self.decided_input = self.decided_sha256 = self.decided_shown = None

    def edit(self, edited: dict[str, Any], shown: dict[str, Any]) -> None:
        """A person put another input in the place of the proposed one; `shown` has its secrets masked."""
        self.decided_input, self.decided_sha256, self.decided_shown = spelled(edited), digest(edited), shown

    def extend(self, db: Db, session: Session, principal: Principal, seconds: float) -> None:
        """A later deadline, `seconds` from now. Raises Conflict if it is decided, over, or the deadline would not be later."""
        if self.status != "pending":
            raise Conflict(f"Approval {self.id} is already {self.status}, by {self.decided_by}.", {"status": self.status})
        if self.expires_at <= session.now:
            raise DeadlinePassed(self)
        until = session.now + timedelta(seconds=seconds)
        if until <= self.expires_at:
            raise Conflict(
                f"seconds: the deadline is {self.expires_at.isoformat()}, which is later already.",
                {"expires_at": self.expires_at.isoformat()},
            )
        self.expires_at, self.deadline_from = until, session.now
        session.emit(
            db,
            "approval.extended",
            {"approval_id": self.id, "tool_use_id": self.tool_call_id, "by": str(principal)}
            | {"expires_at": until.isoformat(), **self.standing(db)},
        )
        session.note(principal, "approval.extended", self.id, expires_at=until.isoformat())

    def remind(self, db: Db, session: Session, principal: Principal) -> None:
        """Say once that it still waits."""
        self.remind_at, self.reminded_at = None, session.now
        told = {
            "approval_id": self.id,
            "tool_use_id": self.tool_call_id,
            "tool": self.tool,
            "expires_at": self.expires_at.isoformat(),
            **self.standing(db),
        }
        session.emit(db, "approval.reminded", told)
        session.note(principal, "approval.reminded", self.id)

    def put(self, db: Db, session: Session, principal: Principal) -> None:
        """Insert it and say that it was asked: an event for who asks for approvals, and the audit."""
        db.insert(self)
        if self.kind == "tool_call" and self.tool in SHOWN_WITH_FILES:
            outbox(db).hints.append(look_hint(self.id, self.session_id, self.workspace_id))
        told = {"approval_id" if name == "id" else name: value for name, value in self.told.items()}
        session.emit(db, "approval.requested", told | {"tool_use_id": self.tool_call_id, "tool": self.tool})
        session.note(
            principal,
            "approval.requested",
            self.id,
            tool_call=self.tool_call_id,
            tool=self.tool,
            input_sha256=self.input_sha256,
            rule=Text(self.rule),
        )

    def close(
        self, db: Db, session: Session, principal: Principal, status: str, decision: Decision, *, goes_on: bool = True
    ) -> str:
        """Its end, with the confirmation that runners wait for. Returns the confirmation's event id.

        `goes_on`: whether an allowed call runs as its event has it. If not, runners are told to drop it.
        """
        echoes = self.echoes if decision.deny_message else masking.Echoes(())
        event_id = ids.new("sevt")
        if not (goes_on and confirmation.is_withheld(db, self, decision)):
            body = confirmation.body(self, decision.stored, str(principal), goes_on=goes_on)
            session.emit(db, confirmation.CONFIRMATION, body, id=event_id)
        db.move(
            self,
            status,
            decision=decision.stored,
            decided_by=str(principal),
            decided_at=session.now,
            event_id=event_id,
            decided_input=self.decided_input,
            decided_shown=self.decided_shown,
            decided_sha256=self.decided_sha256,
        )
        kind = status if status in {"expired", "cancelled"} else "decided"
        told = {
            "approval_id": self.id,
            "tool_use_id": self.tool_call_id,
            "status": status,
            "decided_by": str(principal),
            **(self.standing(db) if self.quorum or principal.kind == "user" else self.demands | {"votes": []}),
        }
        session.emit(db, f"approval.{kind}", told)
        hashes = {"input_sha256": self.input_sha256} | ({"decided_sha256": self.decided_sha256} if self.decided_sha256 else {})
        session.note(principal, f"approval.{kind}", self.id, status=status, **hashes, **echoes.value(decision.noted))
        return event_id


_MARK = """
    SELECT concat(
        (SELECT id FROM approval ORDER BY created_at DESC, id DESC LIMIT 1), ' ',
        (SELECT bit_xor(hashtextextended(id || expires_at, 0)) FROM (
            SELECT id, expires_at FROM approval WHERE status = 'pending' ORDER BY expires_at, id LIMIT 500
        ) next)
    )
"""
