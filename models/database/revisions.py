"""Whether this release works with the database's schema.

Alembic stores the schema's revision. A newer release may have written it, and only that release knows which older ones still work
with its schema. So each migration names them (`serves`), and `assent migrate` writes their revisions into the database, as the
comment of the table `alembic_version`: `0003 0002 0001` is the revision 0003, which serves releases of 0002 and 0001. A revision
that is unknown, and whose comment does not name this release, is a fault.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "migrations"
READ = "SELECT version_num, coalesce(obj_description('alembic_version'::regclass, 'pg_class'), '') FROM alembic_version"
"""A statement that returns the rows for `Schema.of`. It fails in a database without a schema."""


@dataclass(frozen=True)
class Schema:
    """The revision of a database's schema."""

    revision: str
    """Empty if there is no schema yet."""
    serves: frozenset[str]
    """The revisions of the releases that work with the schema, by the release that migrated it."""

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str]]) -> "Schema":
        """Return the schema that the rows of `READ` describe."""
        pairs = dict(list(rows))  # a result of SQLAlchemy has `keys`, which `dict` would take for those of a mapping
        revision = " ".join(sorted(pairs))
        about, *serves = pairs.get(revision, "").split() or [""]
        return cls(revision, frozenset(serves) if about == revision else frozenset())

    @property
    def is_unknown(self) -> bool:
        """True if this release has no migration to the schema's revision: a newer release wrote it, or one of another line."""
        return bool(self.revision) and self.revision not in _own_revisions(SCRIPTS)

    @property
    def fault(self) -> str | None:
        """The reason why this release does not work with the schema, in one line with the remedy; None if it works."""
        newest = max(_own_revisions(SCRIPTS))
        if not self.revision:
            return "the database has no schema yet: run `assent migrate` with DATABASE_OWNER_URL"
        if self.revision == newest or (self.is_unknown and newest in self.serves):
            return None
        if not self.is_unknown:
            return "the database's schema is older than this release: run `assent migrate` with DATABASE_OWNER_URL"
        return (
            f"the database's schema has the revision {self.revision}, which this release (revision {newest}) does not know: "
            "start the release that migrated this database, or restore a backup from before"
        )


NONE = Schema("", frozenset())


@cache
def _own_revisions(scripts: Path) -> frozenset[str]:
    """Return this release's migrations, from their file names. Alembic would add 0.3 s to each start."""
    return frozenset(file.name[:4] for file in scripts.glob("versions/[0-9]*.py"))
