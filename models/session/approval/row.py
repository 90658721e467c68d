"""Approvals: the question put to people, the input that they see, and the one decision that closes it."""

import json
from collections.abc import Iterable
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
from models.database.tables import Base, Hex
from models.database.transactions import outbox
from models.policy.asking import Asking
from models.policy.session_policies import SessionPolicies
from models.pure import masking
from models.pure.json.canonical import digest, spelled
from models.pure.offer import EVERYTHING, Offer
from models.pure.quorum import Quorum
from models.session.approval import confirmation
from models.session.approval import events as approval_events
from models.session.approval.approver_set import ANYBODY, ApproverSet
from models.session.approval.decision import WRITTEN, Decision
from models.session.approval.evidence import SHOWN_WITH_FILES, look_hint
from models.session.row import Session
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import BUDGET, ToolCall

_PENDING = "status = 'pending'"


class Approval(Base):
    """One question about one call. The states are in `models.pure.states.APPROVAL`."""

    __tablename__ = "approval"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    tool_call_id: Mapped[str] = mapped_column(sa.ForeignKey("tool_call.id"))
    kind: Mapped[str]
    """`tool_call`: may the call run? `unknown_outcome`: the call began; how did it end? `question`: the tool asks people."""
    status: Mapped[str] = mapped_column(default="pending")
    tool: Mapped[str]
    prompt: Mapped[str]
    agent_id: Mapped[str | None]
    """The session's agent. A new grant finds the calls that it may release by this column."""
    input: Mapped[str]
    """The canonical input (RFC 8785) that people decide about. They see it with its secrets masked."""
    shown_input: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`input` with its secrets masked; None if it has none. Stored, so that no view of many approvals masks them."""
    input_schema: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The tool's schema when the call was proposed. An edited input must fit it."""
    input_sha256: Mapped[str] = mapped_column(Hex)
    rule: Mapped[str]
    annotations: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The tool server's hints about the tool: `Asking.annotations`."""
    questions: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The tool's questions, where `kind` is `question`: `{key: {"message": str, "schema": {...} | "url": str}}`."""
    leads_to: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """If symbolic links are the reason: where paths in the input lead, by JSON Pointer. Allowing covers no other destination."""
    attempt_told: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The attempt, where `kind` is `unknown_outcome`: `Attempt.summary`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    deadline_from: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    """Start of the present deadline. A halt that ends after it moves the deadline."""
    on_timeout: Mapped[str] = mapped_column(default="deny")
    """Effect of the deadline: `deny`, `end_run`, `escalate` or `allow`."""
    quorum: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Who must approve, and by which answers: `Quorum.kept`. Null: one person or API key, by any answer."""
    approver_set: Mapped[str] = mapped_column(default=ANYBODY, server_default=ANYBODY)
    """The quorum's first set of approvers: `ApproverSet.of`."""
    escalation: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """With `on_timeout` escalate: `Escalation.kept`."""
    level: Mapped[int] = mapped_column(default=0, server_default="0")
    """Number of escalations so far."""
    started_by: Mapped[list[str]] = mapped_column(ARRAY(sa.Text), server_default="{}")
    """Ids of the people who asked for the call: `CallInput.askers` when people were asked, and who edited the input since."""
    remind_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Time of the reminder. None after the reminder, and if none is due."""
    reminded_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    decided_input: Mapped[str | None]
    """The canonical input as a person edited it; None if nobody did."""
    decided_shown: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`decided_input` with its secrets masked. Markers that the person left in place stay markers."""
    decided_sha256: Mapped[str | None] = mapped_column(Hex)
    """Hash of `decided_input`, the only input that may then run."""
    decision: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    shown_fields: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`questions`, `leads_to`, `attempt_told` and `decision`, masked; only those that repeat a secret of the inputs. Stored, so
    that no view searches texts for secrets."""
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    event_id: Mapped[str | None]
    """Id of the decision's event, a `user.tool_confirmation`."""

    __table_args__ = (
        sa.Index("approval_of_call", "tool_call_id"),
        sa.Index("approval_of_session", "session_id"),
        sa.Index("approval_due", "expires_at", postgresql_where=sa.text(_PENDING)),
        sa.Index("approval_to_remind", "remind_at", postgresql_where=sa.text(f"{_PENDING} AND remind_at IS NOT NULL")),
        sa.Index("approval_at_cap", "tool", "workspace_id", postgresql_where=sa.text(f"{_PENDING} AND kind = '{BUDGET}'")),
        sa.Index("approval_waiting_of_agent", "agent_id", "tool", postgresql_where=sa.text(f"{_PENDING} AND kind = 'tool_call'")),
        # Without the id, although lists sort by it too: Postgres sorts the few rows with equal times itself.
        sa.Index("approval_inbox", "workspace_id", "created_at"),
        sa.Index("approval_queue", "workspace_id", "expires_at", postgresql_where=sa.text(_PENDING)),
        sa.Index("approval_of_approvers", "workspace_id", "approver_set", "expires_at", postgresql_where=sa.text(_PENDING)),
    )

    @classmethod
    def ask(cls, db: Db, session: Session, call: ToolCall, asking: Asking, *, kind: str = "tool_call", **shown: Any) -> "Approval":
        """Return a new approval of a call. `put` inserts it, after its call. `shown`: `questions` or `attempt_told`."""
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
            shown_input=cls.shown_input_of(db, call),
            input_schema=asking.input_schema,
            input_sha256=call.input_sha256,
            rule=call.rule,
            annotations=asking.annotations,
            **shown,
            created_at=session.now,
            expires_at=session.now + timedelta(seconds=asking.seconds),
            deadline_from=session.now,
            on_timeout=asking.on_timeout,
            quorum=asking.quorum,
            approver_set=ApproverSet.of(db, Quorum.of(asking.quorum)),
            escalation=asking.escalation,
            level=0,
            started_by=CallInput.of(db, call.id).askers(session),
            remind_at=session.now + timedelta(seconds=remind) if remind and remind < asking.seconds else None,
        )

    def again(self, db: Db, session: Session, call: ToolCall, policies: SessionPolicies) -> "Approval":
        """Return a copy that asks again from level 0, with the time and the reminder of `policies`, whose quorum holds as well."""
        on_timeout: Any = self.on_timeout  # a column of text
        asking = Asking(
            self.prompt,
            policies.seconds(call.name),
            on_timeout,
            policies.remind_after_seconds(call.name),
            self.input_schema,
            annotations=self.annotations,
            quorum=Quorum.of(self.quorum).and_also(policies.quorum(call.name)).kept,
            escalation=self.escalation,
        )
        return Approval.ask(db, session, call, asking)

    def tighten(self, db: Db, quorum: Quorum) -> None:
        """Require `quorum` too, which was configured after people were asked."""
        self.require(db, Quorum.of(self.quorum).and_also(quorum))

    def require(self, db: Db, quorum: Quorum) -> None:
        """Require `quorum` from now on."""
        if quorum.kept != self.quorum:  # an equal object would count as changed, and be written
            self.quorum, self.approver_set = quorum.kept, ApproverSet.of(db, quorum)

    @classmethod
    def of_call(cls, db: Db, call_id: str) -> list["Approval"]:
        """Return all approvals of a call, oldest first."""
        return sorted(db.read(cls.about(call_id))[0], key=cls.age)

    @classmethod
    def about(cls, call_id: str) -> "Query[Approval]":
        """Return the query of a call's approvals, unordered: an ORDER BY may lead Postgres to scan the whole workspace."""
        return select(cls, "WHERE tool_call_id = %(call)s", call=call_id)

    def age(self) -> tuple[datetime, str]:
        """Return the key that sorts approvals, oldest first."""
        return self.created_at, self.id

    @classmethod
    def pending(cls, db: Db, *session_ids: str) -> list["Approval"]:
        """Return the approvals of these sessions that wait for a decision, oldest first."""
        return db.find(cls, _OF_PRESENT_TURNS, sessions=list(session_ids)) if session_ids else []

    @staticmethod
    def newest(db: Db) -> datetime | None:
        """Return when the workspace's newest approval was created; None without any."""
        at: datetime | None = db.value(
            "SELECT max(created_at) FROM approval WHERE workspace_id = current_setting('assent.workspace')"
        )
        return at

    @property
    def masked(self) -> masking.Masked:
        """The proposed input with its secrets masked, as people see it."""
        if self.shown_input is None:
            return masking.Masked(json.loads(self.input), ())
        return masking.Masked(self.shown_input, tuple(sorted(masking.masked_paths(self.shown_input))))

    @property
    def runs(self) -> str:
        """Hash of the input that may run once the approval is allowed."""
        return self.decided_sha256 or self.input_sha256

    @property
    def offer(self) -> Offer:
        """The answers that people may give. `tighten` narrows the offer. Settings narrow the answers about a tool's call alone."""
        return Quorum.of(self.quorum).offer if self.kind == "tool_call" else EVERYTHING

    def excludes(self, people: Iterable[str]) -> bool:
        """True if the call needs four eyes, and one of these people asked for it."""
        return Quorum.of(self.quorum).four_eyes and not set(people).isdisjoint(self.started_by)

    @property
    def by_person(self) -> bool:
        """True if a person or an API key decided, not a deadline, a sweep or a grant."""
        return not (self.decided_by or "system:").startswith(("system:", "grant:"))

    @property
    def by_deadline(self) -> bool:
        """True if the deadline decided."""
        return (self.decided_by or "").startswith("system:")

    def lets_run(self, input_sha256: str) -> bool:
        """True if a call with this input may run: the approval allows the call, or a rerun after an unknown outcome."""
        allowed = self.kind == "tool_call" and self.status == "allowed"
        rerun = self.kind == "unknown_outcome" and self.status == "answered" and (self.decision or {}).get("outcome") == "rerun"
        return (allowed or rerun) and self.runs == input_sha256

    def shown(self, field: str) -> Any:
        """Return a field as people see it: the secrets of the inputs are masked. `field` is one of those of `shown_fields`."""
        return (self.shown_fields or {}).get(field, getattr(self, field))

    def _show(self, echoes: masking.Echoes, **fields: dict[str, Any] | None) -> None:
        """Store those of the fields in which `echoes` are masked."""
        masked = {name: shown for name, value in fields.items() if value and (shown := echoes.value(value)) != value}
        self.shown_fields = {**(self.shown_fields or {}), **masked} or None

    @classmethod
    def shown_input_of(cls, db: Db, call: ToolCall) -> dict[str, Any] | None:
        """Return the input that the call would run, with its secrets masked; None if it has none."""
        call_input = CallInput.of(db, call.id)
        edits = cls.of_call(db, call.id) if call_input.proposed_input is not None else []
        return next((edit.decided_shown for edit in edits if edit.decided_sha256 == call.input_sha256), call_input.shown_input)

    def unedit(self, askers: list[str]) -> None:
        """Restore the proposed input after an edit. `askers` are the people who asked for that input."""
        self.decided_input = self.decided_sha256 = self.decided_shown = None
        self.started_by = askers

    def edit(self, edited: dict[str, Any], shown: dict[str, Any], by: Principal) -> None:
        """Store a person's input instead of the proposed one. `shown` has its secrets masked. Who edits asks for the call."""
        self.decided_input, self.decided_sha256, self.decided_shown = spelled(edited), digest(edited), shown
        self.started_by = sorted({*self.started_by, *by.people})

    def put(self, db: Db, session: Session, principal: Principal) -> None:
        """Insert the approval, with the event and the audit act `approval.requested`."""
        texts = {"questions": self.questions, "leads_to": self.leads_to, "attempt_told": self.attempt_told}
        self._show(masking.Echoes(CallInput.of(db, self.tool_call_id).secrets or ()), **texts)
        db.insert(self)
        if self.kind == "tool_call" and self.tool in SHOWN_WITH_FILES:
            outbox(db).hints.append(look_hint(self.id, self.session_id, self.workspace_id, self.tool))
        session.emit(db, "approval.requested", approval_events.requested(db, self))
        facts = {"tool_call": self.tool_call_id, "tool": self.tool, "input_sha256": self.input_sha256}
        session.note(principal, "approval.requested", self.id, rule=Text(self.rule), **facts)

    def close(
        self, db: Db, session: Session, principal: Principal, status: str, decision: Decision, *, goes_on: bool = True
    ) -> str:
        """Close the approval, and emit the confirmation that runners wait for. Returns the id of the confirmation's event.

        `goes_on`: True if an allowed call runs with the input of its event; else the confirmation denies, so that runners drop it.
        """
        is_written = not WRITTEN.isdisjoint(decision.stored)
        echoes = masking.Echoes(CallInput.of(db, self.tool_call_id).secrets or () if is_written else ())
        self._show(echoes, decision=decision.stored)
        shown = (self.shown_fields or {}).get("decision", decision.stored)
        event_id = ids.new("sevt")
        if self.kind != BUDGET and not (goes_on and confirmation.is_withheld(db, self, decision)):
            body = confirmation.body(self, shown, str(principal), goes_on=goes_on)
            session.emit(db, confirmation.CONFIRMATION, body, id=event_id)
        db.move(
            self,
            status,
            decision=decision.stored,
            decided_by=str(principal),
            decided_at=session.now,
            event_id=event_id,
        )
        kind = status if status in {"expired", "cancelled"} else "decided"
        session.emit(db, f"approval.{kind}", approval_events.closed(db, self, principal))
        hashes = {"input_sha256": self.input_sha256} | ({"decided_sha256": self.decided_sha256} if self.decided_sha256 else {})
        session.note(principal, f"approval.{kind}", self.id, status=status, **hashes, **echoes.value(decision.noted))
        return event_id


_OF_PRESENT_TURNS = """
    WHERE status = 'pending' AND tool_call_id = ANY (ARRAY(SELECT call.id FROM session JOIN tool_call call
    ON call.turn_id = session.turn_id WHERE session.id = ANY(%(sessions)s)))
    ORDER BY created_at, id
"""
"""People are asked about calls of their session's present turn alone: the next turn begins when these are settled."""
