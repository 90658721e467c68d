"""Sets of approvers, by the names in them: an index finds the approvals that wait for a person.

An approval has the id of the first set of its quorum. An approver is in every set (`Quorum.approvers`), so also in the first.
Approvals with equal sets share the rows, which never change.
"""

from collections.abc import Iterable

from models.database.columns import Mapped, mapped_column
from models.database.exchange import Statement
from models.database.rows import Db
from models.database.tables import Base
from models.pure.json.canonical import digest
from models.pure.quorum import Quorum

ANYBODY = ""
"""The id of the set of everybody whose role or key may decide. It has no rows."""


class ApproverSet(Base):
    """One name in one set."""

    __tablename__ = "approver_set"

    workspace_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    """`user:ID` or `group:ID`."""
    id: Mapped[str] = mapped_column(primary_key=True)
    """Part of the hash of all names in the set."""

    @staticmethod
    def of(db: Db, quorum: Quorum) -> str:
        """Return the id of the quorum's first set. The commit inserts the set's rows if they are new."""
        if not quorum.approvers:
            return ANYBODY
        names = sorted(set(quorum.approvers[0]))
        set_id = digest(names)[:32]
        # This key is behind those of "sums", because a claim at a spend limit locks the limit before it asks people.
        db.closing["who", "approver_set", set_id] = Statement(_INSERT, {"id": set_id, "names": names})
        return set_id

    @staticmethod
    def with_names(db: Db, names: Iterable[str]) -> list[str]:
        """Return the ids of the sets with at least one of these names, and ANYBODY."""
        return [ANYBODY, *(set_id for (set_id,) in db.rows(_WITH_NAMES, names=sorted(set(names))))]


_INSERT = """
    INSERT INTO approver_set (workspace_id, name, id)
    SELECT current_setting('assent.workspace'), name, %(id)s FROM unnest(%(names)s::text[]) AS names (name)
    ON CONFLICT DO NOTHING
"""
_WITH_NAMES = """
    SELECT DISTINCT id FROM approver_set WHERE workspace_id = current_setting('assent.workspace') AND name = ANY(%(names)s)
"""
