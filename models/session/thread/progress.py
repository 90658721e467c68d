"""The progress of a session and of each of its threads: status, what they wait for, usage and active time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from models.database.columns import Mapped, mapped_column
from models.pure.pricing.charges import Charge, summed
from models.pure.pricing.money import spending

ACTIVE = ("running", "stopping")
"""Statuses in which active time runs."""


class Progress:
    """The columns that sessions and threads share. A session's are derived from those of its threads."""

    status: Mapped[str] = mapped_column(default="idle")
    waits_for: Mapped[str] = mapped_column(default="none", server_default="none")
    """In the status `waiting`, for whom the calls wait: `person`, `client` (or its worker), or `both`. Lists are filtered by it."""
    stop_reason: Mapped[Mapping[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """Why the last run ended, or what it waits for: a `StopReason` of `models.session.event.of_session`. A session's is that of its
    last `session.status_idle`."""
    usage: Mapped[dict[str, Any]] = mapped_column(JSONB(none_as_null=True))
    """The sum of the usage of all attempts: `models.pure.pricing.charges.summed`."""
    active_seconds: Mapped[float] = mapped_column(default=0.0, server_default="0")
    """Time in the statuses of `ACTIVE`, up to `active_since`."""
    active_since: Mapped[datetime | None] = mapped_column(sa.DateTime(timezone=True))
    """Start of the present active time. None without one."""

    def enter(self, status: str, at: datetime) -> None:
        """Set the status, and begin or end the active time."""
        if self.active_since and status not in ACTIVE:
            self.active_seconds, self.active_since = self.active_for(at), None
        elif self.active_since is None and status in ACTIVE:
            self.active_since = at
        self.status = status

    def active_for(self, at: datetime) -> float:
        """Return the seconds of active time, up to `at`."""
        present = (at - self.active_since).total_seconds() if self.active_since else 0.0
        return round(self.active_seconds + max(present, 0.0), 6)

    def count(self, charge: Charge, times: int = 1) -> None:
        """Add an attempt's charge to the usage, or remove it if `times` is -1."""
        self.usage = summed(self.usage, charge, times)

    def spending(self, at: datetime) -> dict[str, Any]:
        """Return the usage up to `at`, as events and responses have it."""
        return spending(self.usage) | {"active_seconds": self.active_for(at)}

    @property
    def list_cost(self) -> Decimal:
        """The cost of the requests with a price, in US dollars."""
        return Decimal(self.usage.get("cost", "0"))

    @property
    def live(self) -> bool:
        """True while there is work under way, so that nothing can be archived or deleted."""
        return self.status in {"running", "rescheduling", "stopping"}


@dataclass(frozen=True)
class Joint:
    """The progress of several threads together."""

    status: str
    waits_for: str
    stop_reason: Mapping[str, Any] | None
    """While they wait: everything that they wait for. At rest: that one reached a cap, else why the last run of the first thread
    ended. Else None."""

    @classmethod
    def of(cls, threads: Sequence[Progress]) -> "Joint":
        """Return the progress of these threads, a session's own first. The status is that of the busiest thread."""
        statuses = {thread.status for thread in threads}
        status = next((status for status in BUSIEST_FIRST if status in statuses), "terminated")
        if status != "waiting":
            reasons = [thread.stop_reason for thread in threads if thread.stop_reason]
            at_cap = next((reason for reason in reasons if reason["type"] == "budget_reached"), None)
            last_reason = at_cap or next(iter(reasons), None)
            return cls(status, "none", last_reason if status == "idle" else None)
        waiters = [thread for thread in threads if thread.status == "waiting"]
        whom = {thread.waits_for for thread in waiters} - {"none"}
        waits_for = "none" if not whom else whom.pop() if len(whom) == 1 else "both"
        waiting = [thread.stop_reason or {} for thread in waiters]
        event_ids = [event_id for reason in waiting for event_id in reason.get("event_ids", ())]
        return cls(status, waits_for, {"type": "requires_action", "event_ids": event_ids} if event_ids else waiting[0])


BUSIEST_FIRST = ("running", "stopping", "rescheduling", "waiting", "idle")
"""Without `terminated`, which all threads must have for the session to have it."""
