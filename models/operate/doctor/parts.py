"""What the doctor finds in the archive."""

from collections.abc import Iterator

from models.database.transactions import transaction
from models.operate.doctor.finding import Advice, Finding


def findings() -> Iterator[Finding]:
    """Yield the parts that were missing or altered when somebody last read or checked them."""
    with transaction(role="system") as db:
        rows = [(part_id, workspace_id, None) for part_id, workspace_id in db.rows(_FAULTY)]
    if rows:
        yield Finding.of(_PARTS, rows)


_FAULTY = "SELECT id, workspace_id FROM archive_part WHERE fault IS NOT NULL AND status = 'kept' ORDER BY id LIMIT 100"
_PARTS = Advice(
    "archive",
    "critical",
    "parts of the archive that are missing or were altered",
    "the file is gone or is another one, ASSENT_ARCHIVE_URL names another place, or a private key is missing; the log says which",
    "sessions show an error in the place of each part; a sweep looks at a part again once a day",
    "put the files back, from a backup or an older version of the bucket's objects, or name the former private keys",
)
