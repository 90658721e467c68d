"""Links in messages: the URL at which one person sees one approval, and the six-digit code with which that person decides there.

    url, code = issue(db, approval, person_id)     while a message is prepared; neither value is stored
    row = find(token)                              the link with this token, in any workspace, if it is not used up

A link is valid for one input hash, until the deadline that the approval had when the link was issued. Programs also open links and
submit forms, so a link alone decides nothing.
"""

import hmac
import secrets
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.database.transactions import transaction
from models.errors import Conflict
from models.pure.key_secret import sha256
from models.session.approval.row import Approval
from models.settings import settings

CODE_DIGITS = 6
TRIES = 5
"""The wrong code of this number uses the link up."""
MOST_LINKS = 200
"""Most links of one person to one approval. A further link replaces the oldest. The limit is high because each attempt to send a
message makes a link: a channel that fails for hours must not end the link of a message that arrived by another channel."""
KEPT = timedelta(days=30)
"""How long after its deadline a link's page still shows the approval's result."""
_FIND = "SELECT id, workspace_id FROM assent_find_link(%(digest)s, %(code)s)"
_DELETE_OLDEST = """
    DELETE FROM link WHERE approval_id = %(approval)s AND person_id = %(person)s AND id NOT IN (
        SELECT id FROM link WHERE approval_id = %(approval)s AND person_id = %(person)s ORDER BY created_at DESC, id DESC
        LIMIT %(others)s
    )
"""


class UsedUp(Conflict):
    """The token is unknown or used up."""

    def __init__(self) -> None:
        super().__init__("This link does not work, or not any more.")


class Issued(NamedTuple):
    """A new link. The code goes into the message's text, never into the URL."""

    url: str
    code: str


class Link(Base):
    """One link for one person. The row reveals neither the token nor the code."""

    __tablename__ = "link"

    id: Mapped[str] = mapped_column(primary_key=True)
    """`link_...`"""
    workspace_id: Mapped[str]
    session_id: Mapped[str]
    approval_id: Mapped[str]
    person_id: Mapped[str]
    input_sha256: Mapped[str]
    """The hash of the input that would run when the link was issued."""
    token_sha256: Mapped[str] = mapped_column(unique=True)
    code_hmac: Mapped[str]
    """HMAC-SHA256 of the code with the token as the key: without the token, guessing cannot find the code."""
    tries: Mapped[int] = mapped_column(default=0)
    """Wrong codes so far."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    expires_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """The approval's deadline when the link was issued."""
    deadline_from: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    """Start of that deadline. Halts after it stop the deadline's clock."""
    used_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Time at which a decision, or the last wrong code, used the link up."""

    __table_args__ = (
        sa.Index("link_of_approval", "approval_id", "person_id"),
        sa.Index("link_of_session", "session_id"),
        sa.Index("link_expiry", "expires_at"),
    )

    def takes(self, db: Db, token: str, code: str, by: Principal) -> bool:
        """Return True for the right code. Counts a wrong code; the last wrong code uses the link up. The row is locked.

        Raises UsedUp for a used link, except for the right code of a link that a decision used up.
        """
        is_right = hmac.compare_digest(self.code_hmac, _keyed(token, code))
        if self.used_at is not None and not (is_right and self.tries < TRIES):
            raise UsedUp
        if is_right:
            return True
        self.tries += 1
        if self.tries >= TRIES:
            self.used_at = clock.now(db)
            address = {acts.CLIENT_ADDRESS: Text(by.address, about=self.person_id)} if by.address else {}
            facts = {"approval": self.approval_id, "user_id": self.person_id}
            acts.record(db, replace(by, address=None), "link.used_up", self.id, facts | address)
        return False

    @property
    def tries_left(self) -> int:
        """Number of wrong codes that still fit: the last of them uses the link up."""
        return max(TRIES - self.tries, 0)


def issue(db: Db, approval: Approval, person_id: str) -> Issued:
    """Insert a link to a pending approval for one person. Returns the URL and the code.

    Earlier links stay valid: if a worker dies after a message has left, the retry sends a second message, and the person may open
    either. All links end with the first decision, because the approval is then no longer pending.
    """
    token, code = secrets.token_urlsafe(32), f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"
    db.write(_DELETE_OLDEST, approval=approval.id, person=person_id, others=MOST_LINKS - 1)
    db.insert(
        Link(
            id=ids.new("link"),
            workspace_id=approval.workspace_id,
            session_id=approval.session_id,
            approval_id=approval.id,
            person_id=person_id,
            input_sha256=approval.runs,
            token_sha256=sha256(token),
            code_hmac=_keyed(token, code),
            created_at=clock.now(db),
            expires_at=approval.expires_at,
            deadline_from=approval.deadline_from,
        )
    )
    return Issued(f"{settings().public_url.rstrip('/')}/link/{token}", code)


def find(token: str, code: str = "") -> Link:
    """Return the link with this token. Raises UsedUp.

    The right code also finds a link that a decision used up within the last hour: a second click on a button sends the same form
    again, and the browser that decided looks at what comes of it. One statement looks for the link, so that a used link takes as
    long as an unknown link.
    """
    with transaction() as db:
        rows = db.rows(_FIND, digest=sha256(token), code=_keyed(token, code))
    if not rows:
        raise UsedUp
    [(link_id, workspace_id)] = rows
    with transaction(workspace_id) as db:
        row = db.get(Link, link_id)
    if row is None:
        raise UsedUp
    return row


def is_code(text: str) -> bool:
    """True if the text has the form of a code."""
    return text.isascii() and text.isdigit() and len(text) == CODE_DIGITS


def _keyed(token: str, code: str) -> str:
    return hmac.new(token.encode(), code.encode(), "sha256").hexdigest()
