"""Replies to clicks in Slack that decided nothing. Only the Slack user who clicked sees the reply, which `deliver` sends once.

A lost hint loses the reply, which changes nothing: the Slack user clicks again.
"""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox

_OLD = "DELETE FROM slack_reply WHERE created_at < assent_now() - interval '1 hour'"
_TAKE = "DELETE FROM slack_reply WHERE id = %(id)s RETURNING conversation_id, slack_id, slack_user_id, text, offers_link"


@dataclass(frozen=True)
class Clicker:
    """Who clicked, and in which conversation. The fields are columns of `SlackReply`."""

    conversation_id: str
    slack_id: str
    slack_user_id: str


class SlackReply(Base):
    """One reply that waits to be sent."""

    __tablename__ = "slack_reply"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`slrp_...`"""
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    conversation_id: Mapped[str]
    """Slack's id of the conversation with the message that was clicked."""
    slack_id: Mapped[str]
    """Slack's id of the user who clicked."""
    slack_user_id: Mapped[str]
    """The row of the Slack user who clicked. The row may no longer exist when the reply is sent."""
    text: Mapped[str]
    offers_link: Mapped[bool]
    """True if the reply ends with a one-time link. The link is made when the reply is sent."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def put(cls, db: Db, to: Clicker, text: str, *, offers_link: bool = False) -> None:
        """Insert a reply, and have `deliver` send it after the commit. Deletes replies that were not sent within an hour."""
        db.write(_OLD)
        row = cls(
            id=ids.new("slrp"),
            workspace_id=db.workspace_id,
            conversation_id=to.conversation_id,
            slack_id=to.slack_id,
            slack_user_id=to.slack_user_id,
            text=text,
            offers_link=offers_link,
            created_at=clock.now(db),
        )
        db.insert(row)
        outbox(db).hints.append(Hint("deliver.slack_reply", (row.id, db.workspace_id)))

    @classmethod
    def take(cls, db: Db, reply_id: str) -> "SlackReply | None":
        """Delete a reply and return it for sending. None if another worker has taken it."""
        rows = db.rows(_TAKE, id=reply_id)
        if not rows:
            return None
        [(conversation_id, slack_id, slack_user_id, text, offers_link)] = rows
        return cls(
            id=reply_id,
            workspace_id=db.workspace_id,
            conversation_id=conversation_id,
            slack_id=slack_id,
            slack_user_id=slack_user_id,
            text=text,
            offers_link=offers_link,
        )
