"""The columns of an approval, and what they say. `Approval` adds the verbs."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from models.database.columns import Mapped, mapped_column
from models.database.tables import Hex
from models.pure import masking
from models.pure.offer import EVERYTHING, Offer
from models.pure.quorum import Quorum
from models.pure.state_words import StateWord, approval_state
from models.session.approval.approver_set import ANYBODY
from models.session.approval.kinds import KINDS
from models.session.approval.kinds.kind import Kind


class ApprovalColumns:
    """One question: about one call, or about what a session may spend. The states are in `models.pure.states.APPROVAL`."""

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    thread_id: Mapped[str]
    tool_call_id: Mapped[str | None] = mapped_column(sa.ForeignKey("tool_call.id"))
    """The call that waits. Null if the thread waits, for money, and no call."""
    kind: Mapped[str]
    """One of `KINDS`."""
    status: Mapped[str] = mapped_column(default="pending")
    likeness: Mapped[str | None]
    """Which calls are alike: `models.pure.policy.likeness`. Null in rows of earlier releases, and if no call waits to run."""
    tool: Mapped[str]
    """The call's tool; without a call, what people are asked for, such as `session.budget`, a name that no tool can have."""
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
    """Who must approve, and by which options: `Quorum.kept`. Null: one person or API key, by any option."""
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
    backup_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """The time of the backup from which the approval was restored while it was pending: it may have been decided after that."""

    @property
    def traits(self) -> Kind:
        """What holds for all approvals of this kind."""
        return KINDS[self.kind]

    def age(self) -> tuple[datetime, str]:
        """Return the key that sorts approvals, oldest first."""
        return self.created_at, self.id

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
        """The options that people have. `tighten` narrows the offer. Settings narrow the options about a tool's call alone."""
        return Quorum.of(self.quorum).offer if self.traits.asks_to_run else EVERYTHING

    def excludes(self, people: Iterable[str]) -> bool:
        """True if the call needs four eyes, and one of these people asked for it."""
        return Quorum.of(self.quorum).four_eyes and not set(people).isdisjoint(self.started_by)

    @property
    def state(self) -> StateWord:
        """The state as people read it."""
        return approval_state(self.status, self.decision)

    @property
    def by_person(self) -> bool:
        """True if a person or an API key decided, not a deadline, a sweep or a grant."""
        return is_by_person(self.decided_by)

    @property
    def by_deadline(self) -> bool:
        """True if the deadline decided."""
        return (self.decided_by or "").startswith("system:")

    def lets_run(self, input_sha256: str) -> bool:
        """True if a call with this input may run: the approval allows the call, or a rerun after an unknown outcome."""
        return self.traits.lets_run(self.status, self.decision or {}) and self.runs == input_sha256

    def shown(self, field: str) -> Any:
        """Return a field as people see it: the secrets of the inputs are masked. `field` is one of those of `shown_fields`."""
        return (self.shown_fields or {}).get(field, getattr(self, field))


def is_by_person(decided_by: str | None) -> bool:
    """True if this principal is a person or an API key."""
    return not (decided_by or "system:").startswith(("system:", "grant:"))
