"""The workspace's newest approvals, as far as insights look at single ones: what was called, and who decided in a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from models.database.rows import Db
from models.pure.policy.rules import FILE_PATHS

NEWEST = 1000
"""Approvals that one look reads, so it takes the same time however many there are."""
_SHORT = 10_000
"""Bytes of an input that is read. A longer one counts by its tool alone."""


@dataclass(frozen=True)
class RecentAsk:
    """One approval of the newest."""

    id: str
    tool: str
    status: str
    decided_by: str | None
    decided_at: datetime | None
    arguments: dict[str, Any] | None
    """Of a shell command or a file tool, those by which patterns know calls, with secrets masked; None of other tools."""


def newest(db: Db) -> list[RecentAsk]:
    """Return the newest approvals, the newest first."""
    tools = ["bash", *FILE_PATHS]
    return [RecentAsk(*row) for row in db.rows(_NEWEST_ASKS, most=NEWEST, tools=tools, short=_SHORT)]


def allows_in_a_row(asks: Sequence[RecentAsk]) -> dict[str, int]:
    """Return how many calls each person has allowed since their last denial, by principal, as far as these approvals go back."""
    counts: dict[str, int] = {}
    over: set[str] = set()
    endings = [(ask.decided_at, ask.id, ask) for ask in asks if ask.decided_at]
    for _, _, ask in sorted(endings, key=lambda entry: entry[:2], reverse=True):
        who = ask.decided_by or ""
        if not who.startswith("user:"):
            continue
        if ask.status == "denied":
            over.add(who)
        elif ask.status == "allowed" and who not in over:
            counts[who] = counts.get(who, 0) + 1
    return counts


_NEWEST_ASKS = """
    SELECT id, tool, status, decided_by, decided_at, CASE WHEN tool = ANY(%(tools)s) AND octet_length(input) < %(short)s THEN (
        SELECT jsonb_object_agg(key, value) FROM jsonb_each(coalesce(shown_input, input::jsonb))
        WHERE key IN ('command', 'working_directory', 'file_path', 'path')
    ) END
    FROM approval WHERE workspace_id = current_setting('assent.workspace') AND tool_call_id IS NOT NULL
    ORDER BY created_at DESC LIMIT %(most)s
"""
