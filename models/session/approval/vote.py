"""Votes: one person's part of a decision. Per approval, at most one vote by a person and one with a person's right is valid."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, NamedTuple

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from typing_extensions import TypedDict

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.pure.times import rfc3339
from models.session.event.fields import Sha256, Time, one_of

STANDING = "voided_at IS NULL"
"""SQL that is true for a valid vote."""
_OF = f"WHERE approval_id = ANY(%(approvals)s) AND {STANDING} ORDER BY created_at, id"


class Ballot(NamedTuple):
    """What counts of a vote, of a grant's voters too."""

    voter: str
    right: str
    """The person whose right the vote uses."""
    makers: Sequence[str] = ()
    """The people who made the links behind the voter's sign-in. They may be the same human being as the voter."""
    group: str | None = None
    """The id of the group for which the right was delegated. None: all rights."""

    @property
    def people(self) -> set[str]:
        """The people who may have cast the vote."""
        return {self.voter, *self.makers}


class CastVote(TypedDict):
    """One person's part of the decision."""

    by: Annotated[str, Field(examples=["user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])]
    """The person who voted."""
    on_behalf_of: Annotated[str | None, Field(examples=[None])]
    """The person who delegated the vote. Null if the vote is the voter's own."""
    result: Annotated[str, one_of("allow", "deny", "edit")]
    """`edit`: with four eyes, the person edited the input, and somebody else must allow it."""
    input_sha256: Sha256
    """The hash of the input that was voted on."""
    at: Time


class Vote(Base):
    """One person's vote on one approval."""

    __tablename__ = "vote"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    approval_id: Mapped[str] = mapped_column(sa.ForeignKey("approval.id"))
    person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    """The person who voted."""
    for_person_id: Mapped[str] = mapped_column(sa.ForeignKey("person.id"))
    """The person whose right the vote uses: the voter, or a person who delegated the right to the voter."""
    makers: Mapped[list[str] | None] = mapped_column(ARRAY(sa.Text))
    """`Principal.makers` of the voter."""
    delegation_id: Mapped[str | None]
    group_id: Mapped[str | None]
    """The group for which the right was delegated. Null for all rights."""
    result: Mapped[str]
    """`allow` or `deny`; `edit` with four eyes, if the voter edited the input: then somebody else must allow it."""
    input_sha256: Mapped[str]
    """The hash of the input that would run. The vote counts for no other input."""
    choice_sha256: Mapped[str]
    """The hash of all effects of the vote. Votes with equal hashes count together."""
    decision: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """`Decision.stored`."""
    event_id: Mapped[str]
    """Id of the vote's event, an `approval.voted`."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    voided_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """When an edit of the input, or the person's own denial, replaced the vote."""

    __table_args__ = (
        sa.Index("vote_one_by_person", "approval_id", "person_id", unique=True, postgresql_where=sa.text(STANDING)),
        sa.Index("vote_one_for_person", "approval_id", "for_person_id", unique=True, postgresql_where=sa.text(STANDING)),
        sa.Index("vote_of_approval", "approval_id"),
    )

    @classmethod
    def of(cls, db: Db, approvals: Iterable[str]) -> "dict[str, list[Vote]]":
        """Return the valid votes by approval, oldest first."""
        by_approval: dict[str, list[Vote]] = {approval_id: [] for approval_id in approvals}
        for vote in db.find(cls, _OF, approvals=list(by_approval)) if by_approval else ():
            by_approval[vote.approval_id].append(vote)
        return by_approval

    @classmethod
    def of_approval(cls, db: Db, approval_id: str) -> "list[Vote]":
        """Return the valid votes on one approval, oldest first."""
        return db.find(cls, _OF, approvals=[approval_id])

    @property
    def ballot(self) -> Ballot:
        """What counts of the vote."""
        return Ballot(self.person_id, self.for_person_id, self.makers or (), self.group_id)

    @property
    def summary(self) -> CastVote:
        """The vote as events and responses have it."""
        by, right = f"user:{self.person_id}", f"user:{self.for_person_id}"
        return {
            "by": by,
            "on_behalf_of": right if right != by else None,
            "result": self.result,
            "input_sha256": self.input_sha256,
            "at": rfc3339(self.created_at),
        }
