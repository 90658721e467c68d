"""Approvals: the question put to people, the input that they see, and the one decision that closes it."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from models.audit.principal import Principal
from models.audit.text import Text
from models.database import ids
from models.database.query import Query, select
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import outbox
from models.policy.asking import Asking
from models.policy.session_policies import SessionPolicies
from models.pure import masking
from models.pure.json.canonical import canonical_text, digest
from models.pure.json.fitting import misfit
from models.pure.policy.likeness import likeness
from models.pure.quorum import Escalation, Quorum
from models.session.approval import confirmation
from models.session.approval import events as approval_events
from models.session.approval.approver_set import ApproverSet
from models.session.approval.columns import ApprovalColumns
from models.session.approval.decision import WRITTEN, Decision
from models.session.approval.evidence import SHOWN_WITH_FILES, Evidence, known, look_hint
from models.session.approval.kinds import KINDS, budget, tool_call
from models.session.locked import Locked
from models.session.thread.row import Thread
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall

_PENDING = "status = 'pending'"
BEYOND_RUNS = f"{_PENDING} AND NOT {tool_call.KIND.sql}"
"""Waits, and is not about a call that waits to run."""
_PENDING_IN = f"WHERE session_id = ANY(%(sessions)s) AND {_PENDING} ORDER BY created_at, id"


class Approval(ApprovalColumns, Base):
    """An approval: its verbs, and the queries that find it."""

    __tablename__ = "approval"

    __table_args__ = (
        sa.Index("approval_of_call", "tool_call_id"),
        sa.Index("approval_beyond_calls", "session_id", "created_at", postgresql_where=sa.text("tool_call_id IS NULL")),
        sa.Index("approval_of_session", "session_id"),
        sa.Index("approval_pending", "session_id", postgresql_where=sa.text(_PENDING)),
        sa.Index("approval_due", "expires_at", postgresql_where=sa.text(_PENDING)),
        sa.Index("approval_to_remind", "remind_at", postgresql_where=sa.text(f"{_PENDING} AND remind_at IS NOT NULL")),
        sa.Index("approval_at_cap", "tool", "workspace_id", postgresql_where=sa.text(f"{_PENDING} AND {budget.KIND.sql}")),
        sa.Index("approval_waiting_of_agent", "agent_id", "tool", postgresql_where=sa.text(f"{_PENDING} AND {tool_call.KIND.sql}")),
        sa.Index("approval_alike", "agent_id", "likeness", "created_at", postgresql_where=sa.text(tool_call.KIND.sql)),
        # Without the id, although lists sort by it too: Postgres sorts the few rows with equal times itself.
        sa.Index("approval_inbox", "workspace_id", "created_at"),
        sa.Index("approval_decided", "workspace_id", "decided_at", postgresql_where=sa.text("decided_at IS NOT NULL")),
        sa.Index(
            "approval_decided_by", "workspace_id", "decided_by", "decided_at", postgresql_where=sa.text("decided_at IS NOT NULL")
        ),
        sa.Index("approval_queue", "workspace_id", "expires_at", postgresql_where=sa.text(_PENDING)),
        # Of the few that are not calls which wait to run, so that a list finds them among any number of such calls.
        sa.Index("approval_beyond_runs", "workspace_id", "kind", "expires_at", postgresql_where=sa.text(BEYOND_RUNS)),
        sa.Index("approval_of_approvers", "workspace_id", "approver_set", "expires_at", postgresql_where=sa.text(_PENDING)),
    )

    @classmethod
    def ask(cls, locked: Locked, call: ToolCall, asking: Asking, *, kind: str = "tool_call", **shown: Any) -> "Approval":
        """Return a new approval of a call. `put` inserts it, after its call. `shown`: `questions` or `attempt_told`."""
        call_input, shown_input = CallInput.of(locked.db, call), cls.shown_input_of(locked.db, call)
        waits_to_run = KINDS[kind].asks_to_run
        return cls._new(
            locked,
            asking,
            tool_call_id=call.id,
            kind=kind,
            tool=call.name,
            likeness=likeness(call.name, shown_input or call_input.input, call.input_sha256) if waits_to_run else None,
            input=canonical_text(call_input.input),
            shown_input=shown_input,
            input_sha256=call.input_sha256,
            rule=call.rule,
            started_by=call_input.askers(locked),
            **shown,
        )

    @classmethod
    def ask_beyond_calls(cls, locked: Locked, asking: Asking, value: dict[str, Any], **columns: str) -> "Approval":
        """Return a new approval for which the session waits. People may change `value`. `columns`: `kind`, `tool` and `rule`."""
        value_columns = {"input": canonical_text(value), "input_sha256": digest(value)}
        return cls._new(locked, asking, **value_columns, **columns, started_by=locked.session.askers)

    @classmethod
    def _new(cls, locked: Locked, asking: Asking, **columns: Any) -> "Approval":
        db, session = locked.db, locked.session
        remind = asking.remind_after_seconds
        return cls(
            id=ids.new("appr"),
            workspace_id=session.workspace_id,
            session_id=session.id,
            thread_id=locked.thread.id,
            agent_id=locked.thread.agent_id,
            prompt=asking.prompt,
            input_schema=asking.input_schema,
            annotations=asking.annotations,
            **columns,
            created_at=locked.now,
            expires_at=locked.now + timedelta(seconds=asking.seconds),
            deadline_from=locked.now,
            on_timeout=asking.on_timeout,
            quorum=asking.quorum,
            approver_set=ApproverSet.of(db, Quorum.of(asking.quorum)),
            escalation=asking.escalation,
            level=0,
            remind_at=locked.now + timedelta(seconds=remind) if remind and remind < asking.seconds else None,
        )

    def again(self, locked: Locked, call: ToolCall, policies: SessionPolicies) -> "Approval":
        """Return a copy that asks again from level 0, with the time and the reminder of `policies`, whose quorum holds as well."""
        on_timeout: Any = self.on_timeout  # a column of text
        asking = Asking(
            self.prompt,
            policies.seconds(call.name),
            on_timeout,
            policies.remind_after_seconds(call.name),
            self.input_schema,
            annotations=self.annotations,
            quorum=Quorum.of(self.quorum).and_also(policies.quorum(call.name)).as_json,
            escalation=self.escalation,
        )
        return Approval.ask(locked, call, asking)

    def tighten(self, db: Db, quorum: Quorum) -> None:
        """Require `quorum` too, which was configured after people were asked."""
        self.require(db, Quorum.of(self.quorum).and_also(quorum))

    def require(self, db: Db, quorum: Quorum) -> None:
        """Require `quorum` from now on."""
        if quorum.as_json != self.quorum:  # an equal object would count as changed, and be written
            self.quorum, self.approver_set = quorum.as_json, ApproverSet.of(db, quorum)

    @classmethod
    def of_call(cls, db: Db, call: ToolCall) -> list["Approval"]:
        """Return all approvals of a call, oldest first."""
        return sorted(db.read(cls.about(call.id))[0], key=cls.age)

    @classmethod
    def about(cls, call_id: str) -> "Query[Approval]":
        """Return the query of a call's approvals, unordered: an ORDER BY may lead Postgres to scan the whole workspace."""
        return select(cls, "WHERE tool_call_id = %(call)s", call=call_id)

    @classmethod
    def pending(cls, db: Db, *session_ids: str) -> list["Approval"]:
        """Return the approvals of these sessions that wait for a decision, oldest first."""
        return db.find(cls, _PENDING_IN, sessions=list(session_ids)) if session_ids else []

    @classmethod
    def at_cap(cls, db: Db, thread: Thread) -> "Approval | None":
        """Return the question about money for which the thread itself waited last, or waits; None without any."""
        return db.get(cls, thread.cap_approval_id) if thread.cap_approval_id else None

    @property
    def deadline_effect(self) -> str:
        """What the present deadline does: `escalate` while a level is left, else `deny`, `end_run` or `allow`."""
        if self.on_timeout != "escalate":
            return self.on_timeout
        if self.escalation is None:
            return "deny"
        escalation = Escalation.of(self.escalation)
        return "escalate" if self.level < len(escalation.seconds) else escalation.then

    def may_go_without_people(self, call_input: CallInput) -> bool:
        """True if a grant or a deadline that is enough may answer: nobody has edited the call, its paths lead where they say,
        it fits its tool, and it cannot have run after a backup."""
        if self.decided_sha256 is not None or self.leads_to or self.backup_at is not None:
            return False
        return self.input_schema is None or not misfit(self.input_schema, call_input.input)

    def call(self, db: Db) -> ToolCall:
        """Return the call that waits, of an approval that has one."""
        return db.get_one(ToolCall, self.tool_call_id)

    def thread(self, db: Db) -> Thread:
        """Return the thread that waits."""
        return db.get_one(Thread, self.session_id, self.thread_id)

    def path(self, db: Db) -> str:
        """Return the agent that asks, behind those above it, in words: `Coordinator › Researcher`."""
        return Thread.path_words(db, self.session_id, self.thread_id)

    def call_input(self, db: Db) -> CallInput | None:
        """Return the payload of the call that waits; None without a call."""
        return None if self.tool_call_id is None else db.get_one(CallInput, self.tool_call_id)

    def _secrets(self, db: Db) -> list[str]:
        call_input = self.call_input(db)
        return (call_input.secrets or []) if call_input else []

    @staticmethod
    def mark(db: Db) -> str:
        """Return a text by which open pages know when to read the approvals again.

        It changes when an approval is added, or when one of the next 500 due is decided or gets another deadline.
        """
        return str(db.value(_MARK))

    @staticmethod
    def newest(db: Db) -> datetime | None:
        """Return when the workspace's newest approval was created; None without any."""
        at: datetime | None = db.value(
            "SELECT max(created_at) FROM approval WHERE workspace_id = current_setting('assent.workspace')"
        )
        return at

    def _show(self, echoes: masking.Echoes, **fields: dict[str, Any] | None) -> None:
        """Store those of the fields in which `echoes` are masked."""
        masked = {name: shown for name, value in fields.items() if value and (shown := echoes.value(value)) != value}
        self.shown_fields = {**(self.shown_fields or {}), **masked} or None

    @classmethod
    def shown_input_of(cls, db: Db, call: ToolCall) -> dict[str, Any] | None:
        """Return the input that the call would run, with its secrets masked; None if it has none."""
        call_input = CallInput.of(db, call)
        edits = cls.of_call(db, call) if call_input.proposed_input is not None else []
        return next((edit.decided_shown for edit in edits if edit.decided_sha256 == call.input_sha256), call_input.shown_input)

    def unedit(self, askers: list[str]) -> None:
        """Restore the proposed input after an edit. `askers` are the people who asked for that input."""
        self.decided_input = self.decided_sha256 = self.decided_shown = None
        self.started_by = askers

    def edit(self, edited: dict[str, Any], shown: dict[str, Any], by: Principal) -> None:
        """Store a person's input instead of the proposed one. `shown` has its secrets masked. Who edits asks for the call."""
        self.decided_input, self.decided_sha256, self.decided_shown = canonical_text(edited), digest(edited), shown
        self.started_by = sorted({*self.started_by, *by.people})

    def put(self, locked: Locked) -> None:
        """Insert the approval, with the event and the audit act `approval.requested`."""
        db = locked.db
        texts = {"questions": self.questions, "leads_to": self.leads_to, "attempt_told": self.attempt_told}
        self._show(masking.Echoes(self._secrets(db)), **texts)
        db.insert(self)
        if self.traits.asks_to_run and self.tool in SHOWN_WITH_FILES and self.call(db).kind == "builtin":
            self._look(locked, CallInput.of(db, self.call(db)))
        if self.tool_call_id and locked.thread.parent_id and self.call(db).announced:
            locked.cross_post(self.tool_call_id)
        locked.emit(approval_events.requested(db, self))
        facts = {"tool_call": self.tool_call_id, "tool": self.tool, "input_sha256": self.input_sha256}
        locked.note("approval.requested", self.id, rule=Text(self.rule), **facts)

    def _look(self, locked: Locked, call_input: CallInput) -> None:
        """Store the evidence if it is known, else have a tools worker look at the files."""
        session = locked.session
        body = known(session, self.tool, call_input.input)
        if body is None:
            outbox(locked.db).hints.append(look_hint(self.id, session.id, session.workspace_id, self.tool))
            return
        body = masking.Echoes(call_input.secrets or ()).value(body)
        columns = {"approval_id": self.id, "workspace_id": session.workspace_id, "session_id": session.id}
        locked.db.insert(Evidence(**columns, body=body, looked_at=locked.now))

    def close(self, locked: Locked, status: str, decision: Decision, *, goes_on: bool = True) -> str:
        """Close the approval, and emit the confirmation that runners wait for. Returns the id of the confirmation's event.

        `goes_on`: True if an allowed call runs with the input of its event; else the confirmation denies, so that runners drop it.
        """
        db, principal = locked.db, locked.actor
        is_written = not WRITTEN.isdisjoint(decision.stored)
        echoes = masking.Echoes(self._secrets(db) if is_written else ())
        self._show(echoes, decision=decision.stored)
        shown = (self.shown_fields or {}).get("decision", decision.stored)
        event_id = ids.new("sevt")
        if self.traits.is_confirmed and not (goes_on and confirmation.is_withheld(db, self, decision)):
            locked.emit(confirmation.event_of(self, shown, str(principal), goes_on=goes_on), id=event_id)
        db.move(
            self,
            status,
            decision=decision.stored,
            decided_by=str(principal),
            decided_at=locked.now,
            event_id=event_id,
        )
        closed = approval_events.closed(db, self, principal)
        locked.emit(closed)
        hashes = {"input_sha256": self.input_sha256} | ({"decided_sha256": self.decided_sha256} if self.decided_sha256 else {})
        locked.note(closed["type"], self.id, status=status, **hashes, **echoes.value(decision.noted))
        self._trace_wait(locked.at(self), status)
        return event_id

    def _trace_wait(self, locked: Locked, status: str) -> None:
        """Add the span of the wait for a decision. Conventions have no word for it yet. Nobody is named."""
        about = {"assent.approval.id": self.id, "assent.approval.kind": self.kind, "assent.approval.outcome": status}
        about |= {"assent.approval.decided_by": locked.actor.kind, "gen_ai.tool.name": self.tool}
        about |= {"gen_ai.tool.call.id": self.tool_call_id} if self.tool_call_id else {}
        locked.trace("wait_for_approval", self.tool, self.created_at, about)


_MARK = """
    SELECT concat(
        (SELECT id FROM approval ORDER BY created_at DESC, id DESC LIMIT 1), ' ',
        (SELECT bit_xor(hashtextextended(id || expires_at, 0)) FROM (
            SELECT id, expires_at FROM approval WHERE status = 'pending' ORDER BY expires_at, id LIMIT 500
        ) next)
    )
"""
