"""A finding of the doctor: what is wrong, since when, why, what will happen by itself, and what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Level = Literal["info", "warning", "critical"]
LEVELS: tuple[Level, ...] = ("info", "warning", "critical")
"""From good to bad. `info` needs nobody."""
SHOWN = 5
"""Most ids that a finding names."""


@dataclass(frozen=True)
class Advice:
    """What is known about all findings of one check, in sentences."""

    check: str
    """The check's name, for programs."""
    level: Level
    title: str
    why: str
    by_itself: str
    """What happens if nobody acts."""
    to_do: str


@dataclass(frozen=True)
class Finding:
    """One fault, or one fact that an operator should know."""

    check: str
    level: Level
    title: str
    why: str
    by_itself: str
    to_do: str
    count: int = 1
    """Number of rows, counted up to a bound."""
    since: datetime | None = None
    """When the first of them began to be so. None: unknown."""
    subjects: tuple[str, ...] = ()
    """Ids of the rows, at most SHOWN."""
    workspaces: tuple[str, ...] = ()
    """Ids of their workspaces, at most SHOWN."""

    @classmethod
    def of(cls, advice: Advice, rows: Iterable[tuple[str, str, datetime | None]], why: str = "") -> "Finding":
        """Return the finding about these rows, the longest first: id, workspace's id, since when. `why` replaces the advice's."""
        rows = list(rows)
        workspaces = dict.fromkeys(workspace_id for _, workspace_id, _ in rows if workspace_id)
        return cls(
            advice.check,
            advice.level,
            advice.title,
            why or advice.why,
            advice.by_itself,
            advice.to_do,
            count=len(rows),
            since=min((at for _, _, at in rows if at), default=None),
            subjects=tuple(subject_id for subject_id, _, _ in rows[:SHOWN] if subject_id),
            workspaces=tuple(workspaces)[:SHOWN],
        )


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level of the findings, `info` without any."""
    return max((finding.level for finding in findings), key=LEVELS.index, default="info")
