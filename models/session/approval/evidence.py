"""Evidence: what a tools worker saw in a session's files, for people who decide about a call on these files.

Only tools workers have the files. A worker looks when an approval is inserted, and again when its card is opened. Where a shell
command would start is known without a look: the worker that ended the last call has stored it with the result.

    bash     {"directory": "src"}                       where the command would start; in a repository also its
                                                        `branch`, and the `commit` of the branch
    edit     {"hunks": [...], "left_out": 0}            the change, in the shape of `models.pure.text.line_diff`
    write    {"hunks": [...], "left_out": 0, "is_new": false}
    any      {"problem": "..."}                         why the call would fail now
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database import clock
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import Hint, outbox
from models.pure.json.canonical import canonical
from models.pure.text.line_diff import ChangeSize
from models.pure.text.words import SESSION_DIRECTORY
from models.session.row import Session

SHOWN_WITH_FILES = frozenset({"bash", "edit", "write"})
"""The built-in tools whose cards show evidence."""
CHANGES_A_FILE = frozenset({"edit", "write"})
"""Those of them whose evidence is a change of a file."""
BEFORE_FILES = {"directory": SESSION_DIRECTORY}
"""The evidence for `bash` while no call has had the session's files."""
FRESH_SECONDS = 10
"""Opening a card does not repeat a look that is younger than this."""


class Evidence(Base):
    """The last look for one approval. It decides nothing: a call is judged again when it is claimed."""

    __tablename__ = "evidence"

    approval_id: Mapped[str] = mapped_column(sa.ForeignKey("approval.id"), primary_key=True)
    workspace_id: Mapped[str]
    session_id: Mapped[str] = mapped_column(index=True)
    body: Mapped[dict[str, Any]] = mapped_column(JSONB)
    first_body: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """The first look, if the last one differs from it."""
    looked_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @classmethod
    def keep(cls, db: Db, approval_id: str, session_id: str, body: dict[str, Any]) -> None:
        """Store a look in the place of the previous look. If they differ, open pages are told."""
        before = db.get(cls, approval_id, lock=True)
        now = clock.now(db)
        if before is None:
            db.insert(cls(approval_id=approval_id, workspace_id=db.workspace_id, session_id=session_id, body=body, looked_at=now))
        elif canonical(before.body) == canonical(body):
            before.looked_at = now
            return
        else:
            first_body = before.first_body or before.body
            before.first_body = None if canonical(first_body) == canonical(body) else first_body
            before.body, before.looked_at = body, now
        outbox(db).workspaces.add(db.workspace_id)

    @staticmethod
    def sizes(db: Db, approval_ids: Iterable[str]) -> dict[str, ChangeSize]:
        """Return the sizes of the changes that workers saw for these approvals, by id. Reads no line of them."""
        ids = list(approval_ids)
        return {row[0]: ChangeSize(*row[1:]) for row in db.rows(_SIZES, ids=ids)} if ids else {}


def known(session: Session, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the evidence for a call of a built-in tool, as the last call left the files; None if a worker must look."""
    if tool != "bash" or arguments.get("working_directory") is not None or arguments.get("restart"):
        return None
    return session.shell_start if session.storage_id else BEFORE_FILES


def look_hint(approval_id: str, session_id: str, workspace_id: str, tool: str) -> Hint:
    """Return the queue message that has a tools worker look at the files for an approval of a call of `tool`."""
    return Hint("tool.look", (approval_id, session_id, workspace_id), about=str({"tool": tool}))


_SIZES = """
    SELECT approval_id, count(*) FILTER (WHERE line LIKE '+%%'), count(*) FILTER (WHERE line LIKE '-%%'),
        coalesce((body ->> 'left_out')::int, 0), coalesce((body ->> 'is_new')::boolean, false)
    FROM evidence
    LEFT JOIN LATERAL (
        SELECT line FROM jsonb_array_elements(body -> 'hunks') hunk, jsonb_array_elements_text(hunk -> 'lines') line
    ) lines ON true
    WHERE approval_id = ANY(%(ids)s) AND body ? 'hunks' GROUP BY approval_id
"""
