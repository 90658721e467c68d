"""Endpoints: a workspace's URLs that receive its events, by Standard Webhooks."""

import secrets
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from models.audit import acts
from models.audit.principal import Principal
from models.audit.text import Text
from models.database import clock, encryption, ids
from models.database.columns import Mapped, mapped_column
from models.database.rows import Db
from models.database.tables import Base
from models.errors import Conflict, NotFound
from models.outbox import removal

MOST_ENDPOINTS = 50
"""Most endpoints of one workspace."""
AT_ONCE = 10
"""Most concurrent deliveries to an endpoint that responded with a 2xx within `LATELY`. Other endpoints get one."""
LATELY = timedelta(minutes=1)
JUST_NOW = timedelta(seconds=1)
QUICK_SECONDS = 1.0
LONGEST_PAUSE = timedelta(minutes=5)
ROTATION = timedelta(hours=24)
"""How long the previous secret also signs deliveries."""


@dataclass(frozen=True)
class NewEndpoint:
    """What somebody asks for in a new endpoint."""

    url: str
    enabled_events: Sequence[str]
    name: str = ""
    description: str = ""


class Endpoint(Base):
    """A URL, the types of events that it receives, and the secrets that sign its deliveries."""

    __tablename__ = "endpoint"

    id: Mapped[str] = mapped_column(primary_key=True)
    workspace_id: Mapped[str] = mapped_column(sa.ForeignKey("workspace.id"))
    url: Mapped[str]
    name: Mapped[str] = mapped_column(default="")
    description: Mapped[str] = mapped_column(default="")
    enabled_events: Mapped[list[str]] = mapped_column(ARRAY(sa.Text))
    state: Mapped[str] = mapped_column(default="enabled")
    """`enabled` or `disabled`."""
    disabled_reason: Mapped[str] = mapped_column(default="")
    """Why Assent disabled the endpoint; empty if a person did, or if it is enabled."""
    secret: Mapped[str]
    """Encrypted for `deliver`, which signs deliveries. Decrypted: `whsec_...`, as in Standard Webhooks."""
    previous_secret: Mapped[str | None]
    previous_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Until this time, deliveries also carry the previous secret's signature."""
    succeeded_at: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Time of the last 2xx."""
    failing_since: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Time of the first failed attempt after the last 2xx. None if the last attempt succeeded."""
    paused_until: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Nothing is sent before this time. None unless two attempts failed in a row."""
    last_seconds: Mapped[float | None]
    """Duration of the last attempt that got a 2xx."""
    created_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))
    updated_at: Mapped[datetime] = mapped_column(sa.DateTime(timezone=True))

    __table_args__ = (sa.Index("endpoint_of_workspace", "workspace_id", "id"),)

    @classmethod
    def create(cls, db: Db, by: Principal, new: NewEndpoint) -> tuple["Endpoint", str]:
        """Insert an enabled endpoint. Returns the row and the new secret. Raises Conflict if the workspace has `MOST_ENDPOINTS`."""
        if db.value("SELECT COUNT(*) FROM endpoint WHERE workspace_id = %(id)s", id=db.workspace_id) >= MOST_ENDPOINTS:
            raise Conflict(f"This workspace has {MOST_ENDPOINTS} webhook endpoints, the most it may have: delete one first.")
        now, secret, endpoint_id = clock.now(db), new_secret(), ids.new("whep")
        row = cls(
            id=endpoint_id,
            workspace_id=db.workspace_id,
            url=new.url,
            name=new.name,
            description=new.description,
            enabled_events=sorted(set(new.enabled_events)),
            secret=encryption.encrypt("deliver", secret, endpoint_id),
            created_at=now,
            updated_at=now,
        )
        db.insert(row)
        acts.record(db, by, "webhook.created", row.id, {"url": Text(new.url), "enabled_events": row.enabled_events})
        return row, secret

    @classmethod
    def find(cls, db: Db, endpoint_id: str, *, lock: bool = False) -> "Endpoint":
        """Return the endpoint. Raises NotFound."""
        row = db.get(cls, endpoint_id, lock=lock)
        if row is None:
            raise NotFound("webhook endpoint", endpoint_id)
        return row

    def change(self, db: Db, by: Principal, changes: dict[str, Any]) -> None:
        """Set the fields in `changes`. Enabling clears `disabled_reason`. Events of the disabled time are never delivered."""
        new_values = {name: value for name, value in changes.items() if getattr(self, name) != value}
        if "state" in new_values:
            self.disabled_reason = ""
        if new_values.keys() & {"state", "url"}:
            self.failing_since = self.paused_until = None
        for name, value in new_values.items():
            setattr(self, name, value)
        if new_values:
            self.updated_at = clock.now(db)
            details = {name: Text(value) if isinstance(value, str) else value for name, value in new_values.items()}
            acts.record(db, by, "webhook.updated", self.id, details)

    def regenerate_secret(self, db: Db, by: Principal) -> str:
        """Replace the secret and return the new one. The previous secret also signs for `ROTATION`."""
        now, secret = clock.now(db), new_secret()
        self.previous_secret, self.previous_until = self.secret, now + ROTATION
        self.secret, self.updated_at = encryption.encrypt("deliver", secret, self.id), now
        acts.record(db, by, "webhook.secret_regenerated", self.id, {})
        return secret

    def most_at_once(self, now: datetime) -> int:
        """Return the number of concurrent deliveries: one, until the endpoint proves that it responds."""
        responds = self.failing_since is None and self.succeeded_at is not None and now - self.succeeded_at < LATELY
        return AT_ONCE if responds else 1

    def responded_just_now(self, now: datetime) -> bool:
        """True if recording a further 2xx is not worth a write."""
        return self.is_quick and self.succeeded_at is not None and now - self.succeeded_at < JUST_NOW

    @property
    def is_quick(self) -> bool:
        """True if the last response was a 2xx within `QUICK_SECONDS`: the sending thread will soon be free again."""
        return self.failing_since is None and self.last_seconds is not None and self.last_seconds < QUICK_SECONDS

    def succeed(self, now: datetime, seconds: float) -> None:
        """Record a 2xx after `seconds`."""
        self.succeeded_at, self.last_seconds = now, seconds
        self.failing_since = self.paused_until = None

    def fail(self, now: datetime) -> None:
        """Record a failed attempt. From the second failure on, the endpoint pauses for half as long as it has been failing."""
        if self.failing_since is None:
            self.failing_since = now
        else:
            self.paused_until = now + min((now - self.failing_since) / 2, LONGEST_PAUSE)

    def get_ready(self) -> None:
        """End the pause before a person sends a delivery. Raises Conflict if the endpoint is disabled."""
        if self.state != "enabled":
            raise Conflict(f"The webhook endpoint {self.id} is disabled: enable it first.")
        self.paused_until = None

    def disable(self, db: Db, by: Principal, reason: str) -> None:
        """Stop all deliveries, for a reason that the endpoint's owner reads. Idempotent."""
        if self.state == "enabled":
            self.state, self.disabled_reason, self.updated_at = "disabled", reason, clock.now(db)
            acts.record(db, by, "webhook.disabled", self.id, {"reason": reason})

    def delete(self, db: Db, by: Principal) -> None:
        """Delete the endpoint. Nothing more is sent to it, and a sweep removes its deliveries."""
        removal.begin(db, "endpoint", self.id)
        acts.record(db, by, "webhook.deleted", self.id, {"url": Text(self.url)})
        db.delete(self)

    def secrets(self, now: datetime) -> list[str]:
        """Return the secrets that sign at `now`, the newest first. Raises Undecryptable: only `deliver` has the private key."""
        previous = self.previous_secret if self.previous_until is not None and self.previous_until > now else None
        return [encryption.decrypt("deliver", secret, self.id) for secret in (self.secret, previous) if secret]


def new_secret() -> str:
    """Return a new signing secret of 256 bits."""
    return "whsec_" + b64encode(secrets.token_bytes(32)).decode()
