"""The payload of a tool call: its input, how people are asked about the call, and the tool's questions with people's answers."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from models.database.columns import Mapped, mapped_column
from models.database.query import Query, select
from models.database.rows import Db, RowGone
from models.database.tables import Base
from models.pure.masking import MARKER, Masked
from models.session.archive.reading import row_of
from models.session.locked import Locked
from models.session.tool_call.columns import ToolCallColumns


class CallInput(Base):
    """The payload of one call, in a row of its own: `flow.lock` reads all calls of a turn, and few of their inputs are used.

    Written with the call, and deleted with it.
    """

    __tablename__ = "call_input"

    tool_call_id: Mapped[str] = mapped_column(
        sa.ForeignKey("tool_call.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"), primary_key=True
    )
    workspace_id: Mapped[str]
    input: Mapped[dict[str, Any]] = mapped_column(JSONB(none_as_null=True))
    """The input that runs. `ToolCall.input_sha256` is its hash."""
    proposed_input: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The input that the model proposed, if a person edited it."""
    shown_input: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The proposed input with its secrets masked; None if it has no secrets."""
    secrets: Mapped[list[str] | None] = mapped_column(JSONB(none_as_null=True))
    """Texts that are masked in the inputs and long enough to be searched for. They are masked in the call's result too."""
    asking: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """How to ask people about a call that was allowed at once, if it must be asked about later: `Asking.kept`."""
    question: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The tool's questions, which must be answered before it can go on: `{"requests": {key: {...}}, "state": str | None}`."""
    answers: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """A person's answers to the questions, by key."""
    asked_by: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """If people edited the input: `Approval.started_by` of the approval by which the edit was allowed."""

    def askers(self, locked: Locked) -> list[str]:
        """Return the ids of the people who asked for the call: those behind the run, and those who edited the input."""
        return sorted({*locked.session.askers, *(self.asked_by or ())})

    @property
    def shown(self) -> dict[str, Any] | None:
        """The input that runs, with its secrets masked, as a grant must fit it; None if it has no secrets.

        An input that a person edited is masked as a whole: it was allowed as it is, and only grants for exactly it cover it.
        """
        return self.shown_input if self.proposed_input is None else dict.fromkeys(self.input, MARKER)

    def masks_also(self, masked: Masked) -> None:
        """Mask what another schema of the tool says is secret, too."""
        if masked.paths and self.proposed_input is None:
            self.shown_input = masked.arguments
        self.add_secrets(masked.secrets)

    def add_secrets(self, texts: Iterable[str]) -> None:
        """Mask these texts in the call's result, and in what is written about the call, too."""
        self.secrets = sorted({*(self.secrets or ()), *texts}) or None

    @classmethod
    def of(cls, db: Db, call: ToolCallColumns) -> "CallInput":
        """Return the payload of a call, also from the archive. Raises Unreadable."""
        row = row_of(db, cls, call.id, call.session_id, call.settled_at)
        if row is None:
            raise RowGone(f"no call_input of {call.id}")
        return row

    @classmethod
    def about(cls, call_id: str) -> "Query[CallInput]":
        """Return the query of a call's payload, to read it together with other rows."""
        return select(cls, "WHERE tool_call_id = %(call)s", call=call_id)
