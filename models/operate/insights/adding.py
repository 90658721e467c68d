"""Adds closed approvals to the sums of the day on which people were asked, window by window with the metrics."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from models.database.rows import Db
from models.operate.insights.waits import BY_ITSELF, CLASSES, wait_of

ABOUT = ("hour", "tool", "agent", "channel", "person")
"""By what approvals are summed up. Each approval has exactly one hour, tool and channel. `of_agent` has the sums of one agent."""
OF_NOBODY = frozenset({"grant", "system"})
"""Ways by which an approval is closed without anybody who looks at it."""


@dataclass(frozen=True)
class ClosedAsk:
    """What the sums need of a closed approval: a row of the function `assent_closed_approvals`."""

    workspace_id: str
    outcome: str
    channel: str
    seconds: float | None
    """The time from the question to the end; None of an approval that is deleted."""
    tool: str | None
    agent_id: str | None
    person_id: str | None
    """Who decided; None unless a person did."""
    created_at: datetime | None

    @property
    def names(self) -> dict[str, str | None]:
        """The names under which the approval counts, by what they are."""
        hour = f"{self.created_at.astimezone(UTC).hour:02}" if self.created_at else None
        person = self.person_id if self.channel not in OF_NOBODY else None
        names = {"hour": hour, "tool": self.tool, "channel": self.channel, "person": person}
        if self.agent_id is None:
            return names
        return {**names, "agent": self.agent_id, **{of_agent(about, self.agent_id): name for about, name in names.items()}}


def of_agent(about: str, agent_id: str) -> str:
    """Return what stands in the place of `about` in the sums of one agent. So they lie together in the table's key."""
    return f"{about} of {agent_id}"


def add(db: Db, asks: Iterable[ClosedAsk]) -> None:
    """Add approvals to the sums, each of which the caller adds once. An approval that is deleted is left out."""
    sums: dict[tuple[str, str, date, str, str], list[int]] = {}
    for ask in asks:
        if ask.created_at is None or ask.seconds is None:
            continue
        day = ask.created_at.astimezone(UTC).date()
        wait = BY_ITSELF if ask.channel in OF_NOBODY else wait_of(max(ask.seconds, 0))
        for about, name in ask.names.items():
            if name:
                counts = sums.setdefault((ask.workspace_id, about, day, name, ask.outcome), [0] * len(CLASSES))
                counts[CLASSES.index(wait)] += 1
    if not sums:
        return
    keys = sorted(sums)  # in one order, so that two sweeps never wait for each other
    columns = [list(column) for column in zip(*keys, strict=True)]
    names = ("workspaces", "abouts", "days", "names", "outcomes")
    texts = [f"{{{','.join(map(str, sums[key]))}}}" for key in keys]
    db.write(_ADD, **dict(zip(names, columns, strict=True)), sums=texts)


_ADD = """
    SELECT assent_add_asks(%(workspaces)s::text[], %(abouts)s::text[], %(days)s::date[], %(names)s::text[], %(outcomes)s::text[],
        %(sums)s::text[])
"""
