"""The organization: the installation itself, which webhooks name. The migration inserts its only row."""

from datetime import datetime

import sqlalchemy as sa

from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base


class Organization(Base):
    """The installation."""

    __tablename__ = "organization"

    id: Mapped[str] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    @staticmethod
    def id_of(db: Db) -> str:
        """Return the organization's id, `org_...`."""
        return str(db.value("SELECT id FROM organization ORDER BY id LIMIT 1"))
