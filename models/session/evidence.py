"""Evidence: what a tools worker saw of a session's files, for people who decide about a call on these files.

Only tools workers have the files. A worker looks when an approval is made, and again when its card is opened.

    bash     {"directory": "src"}                       where the command would start
    edit     {"hunks": [...], "left_out": 0}            the change, as `models.pure.line_diff` says it
    write    {"hunks": [...], "left_out": 0, "is_new": false}
    any      {"problem": "..."}                         why the tool could not do it now
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.database import clock
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.pure.canonical import canonical

SHOWN_WITH_FILES = frozenset({"bash", "edit", "write"})
"""The built-in tools whose cards show something of the session's files."""
FRESH_SECONDS = 10
"""A look that is younger than this is not repeated when a card is opened."""


class Evidence(Base):
    """The last look for one approval. It decides nothing: a call is judged again when it is claimed."""

    __tablename__ = "evidence"

    approval_id: Mapped[str] = mapped_column(sa.ForeignKey("approval.id"), primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str] = mapped_column(sa.ForeignKey("session.id"), index=True)
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    looked_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def keep(cls, db: Db, approval_id: str, session_id: str, body: dict[str, Any]) -> None:
        """Store a look, in the place of the one before. Open pages hear of it if it differs."""
        before = db.get(cls, approval_id, lock=True)
        now = clock.now(db)
        if before is None:
            db.insert(cls(approval_id=approval_id, workspace_id=db.workspace_id, session_id=session_id, body=body, looked_at=now))
        elif canonical(before.body) == canonical(body):
            before.looked_at = now
            return
        else:
            before.body, before.looked_at = body, now
        outbox(db).workspaces.add(db.workspace_id)


def look_hint(approval_id: str, session_id: str, workspace_id: str) -> Hint:
    """The queue message that has a tools worker look at the files for an approval."""
    return Hint("tool.look", (approval_id, session_id, workspace_id))
