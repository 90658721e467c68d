"""How the system stands, as one workspace may see it: its own rows, and times that tell nothing of other workspaces."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from models.database.rows import Db

MOST = 1000
"""Rows that a queue, or the requests to models, count at most."""
LATE = timedelta(minutes=5)
"""A queue whose first row waits for longer, and a sweep that has not succeeded for longer, needs somebody."""
SLOW_SWEEPS = frozenset({"tool.tidy", "sweep.check_parts"})
"""Sweeps that are not due within LATE."""
LOOK_BACK = timedelta(hours=1)
"""How far the look at models and toolsets goes back."""


@dataclass(frozen=True)
class Queue:
    """The rows of a workspace in one queue."""

    name: str
    waiting: int
    """Due rows that no worker has taken, counted up to MOST."""
    oldest: datetime | None
    """Since when the first of them is due."""
    working: int
    """Rows on which a worker works, counted up to MOST."""

    def is_late(self, now: datetime, *, is_halted: bool = False) -> bool:
        """True if the first row waits for too long, and not for the end of a halt, which holds turns and tool calls."""
        is_held = is_halted and self.name.startswith(("Turns of agents", "Tool calls"))
        return self.oldest is not None and now - self.oldest > LATE and not is_held


@dataclass(frozen=True)
class Sweeps:
    """The sweeps of the installation, which the process `beat` starts."""

    newest: datetime | None
    """The last success of any sweep. None: no sweep has run yet."""
    late: tuple[tuple[str, datetime], ...]
    """Sweeps that have not succeeded for LATE, each with its last success."""


@dataclass(frozen=True)
class ModelState:
    """The requests to one model in the last hour."""

    provider: str
    model: str
    replies: int
    """Counted up to MOST, of all models together."""
    last_at: datetime


@dataclass(frozen=True)
class ToolsetState:
    """A toolset that workers announce."""

    name: str
    tools: int
    seen_at: datetime


def queues(db: Db, now: datetime) -> list[Queue]:
    """Return the workspace's queues: turns, tools and those of single toolsets, webhooks, messages."""
    return [Queue(*row) for row in db.rows(_QUEUES, now=now, most=MOST)]


def sweeps(db: Db, now: datetime) -> Sweeps:
    """Return how the sweeps stand. They serve all workspaces, and their times tell nothing of any."""
    rows = db.rows("SELECT sweep, succeeded_at FROM assent_read_sweeps() ORDER BY succeeded_at DESC")
    late = [(sweep, at) for sweep, at in rows if sweep not in SLOW_SWEEPS and now - at > LATE]
    return Sweeps(rows[0][1] if rows else None, tuple(late))


def replies(db: Db, now: datetime) -> list[ModelState]:
    """Return the models that replied in the last hour, the most frequent first."""
    return [ModelState(*row) for row in db.rows(_REPLIES, since=now - LOOK_BACK, most=MOST)]


def model_errors(db: Db, now: datetime) -> list[tuple[str, int]]:
    """Return what failed at models in the last hour, as the kind of the error or the switch to another model, and how often."""
    return [(words, count) for words, count in db.rows(_MODEL_ERRORS, since=now - LOOK_BACK)]


def toolsets(db: Db, now: datetime) -> list[ToolsetState]:
    """Return the toolsets that workers have, or had within the last day. Every worker of tools announces `session`."""
    return [ToolsetState(*row) for row in db.rows(_TOOLSETS, since=now - timedelta(days=1))]


_OURS = "workspace_id = current_setting('assent.workspace')"
# A queue's name is looked up from one to the next, so that the index answers. `deliver` has two kinds of rows.
_QUEUES = f"""
    WITH RECURSIVE step (line) AS (
        (SELECT queue FROM tool_call WHERE status = 'queued' AND held_back IS NULL AND queue IS NOT NULL AND {_OURS}
            ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (
            SELECT queue FROM tool_call WHERE status = 'queued' AND held_back IS NULL AND queue > step.line AND {_OURS}
            ORDER BY queue LIMIT 1
        ) FROM step WHERE step.line IS NOT NULL
    ), waiting AS (
        SELECT 1 AS place, 'Turns of agents' AS name, first.due_at FROM (
            SELECT due_at FROM turn WHERE {_OURS} AND status = 'queued' AND due_at <= %(now)s ORDER BY due_at LIMIT %(most)s
        ) first
        UNION ALL
        SELECT 2, 'Tool calls', first.due_at FROM (
            SELECT due_at FROM tool_call WHERE {_OURS} AND status = 'queued' AND held_back IS NULL AND queue IS NULL
            AND due_at <= %(now)s ORDER BY due_at LIMIT %(most)s
        ) first
        UNION ALL
        SELECT 3, 'Tool calls of ' || step.line, first.due_at FROM step CROSS JOIN LATERAL (
            SELECT due_at FROM tool_call WHERE {_OURS} AND status = 'queued' AND held_back IS NULL AND queue = step.line
            AND due_at <= %(now)s ORDER BY due_at LIMIT %(most)s
        ) first WHERE step.line IS NOT NULL
        UNION ALL
        SELECT 4, 'Webhooks', first.due_at FROM endpoint CROSS JOIN LATERAL (
            SELECT due_at FROM delivery WHERE endpoint_id = endpoint.id AND status = 'queued' AND due_at <= %(now)s
            ORDER BY due_at LIMIT %(most)s
        ) first WHERE endpoint.{_OURS} AND (paused_until IS NULL OR paused_until <= %(now)s)
        UNION ALL
        SELECT 5, 'Messages to people', first.due_at FROM (
            SELECT due_at FROM notification WHERE {_OURS} AND status = 'queued' AND due_at <= %(now)s LIMIT %(most)s
        ) first
    ), working AS (
        SELECT 1 AS place, 'Turns of agents' AS name FROM turn WHERE {_OURS} AND status = 'running'
        UNION ALL
        SELECT CASE WHEN queue IS NULL THEN 2 ELSE 3 END, 'Tool calls' || coalesce(' of ' || queue, '') FROM tool_call
            WHERE {_OURS} AND status = 'running'
        UNION ALL SELECT 4, 'Webhooks' FROM delivery WHERE {_OURS} AND status = 'running'
        UNION ALL SELECT 5, 'Messages to people' FROM notification WHERE {_OURS} AND status = 'running'
    )
    SELECT name, least(sum(waits), %(most)s), min(due_at), least(sum(works), %(most)s) FROM (
        SELECT place, name, 1 AS waits, due_at, 0 AS works FROM waiting
        UNION ALL SELECT place, name, 0, NULL, 1 FROM working
        UNION ALL VALUES (1, 'Turns of agents', 0, NULL::timestamptz, 0), (2, 'Tool calls', 0, NULL, 0),
            (4, 'Webhooks', 0, NULL, 0), (5, 'Messages to people', 0, NULL, 0)
    ) parts GROUP BY place, name ORDER BY place, name
"""  # noqa: S608 - a condition of our own
_REPLIES = f"""
    SELECT provider, model, count(*), max(at) FROM (
        SELECT provider, model, at FROM turn_usage WHERE {_OURS} AND at > %(since)s ORDER BY at DESC LIMIT %(most)s
    ) recent GROUP BY provider, model ORDER BY 3 DESC, 1, 2
"""  # noqa: S608
_MODEL_ERRORS = f"""
    SELECT words, count(*) FROM (
        SELECT CASE action
            WHEN 'turn.fell_back' THEN concat(details ->> 'source', ' to ', details ->> 'target', ': ', details ->> 'reason')
            ELSE details ->> 'error'
        END AS words
        FROM audit WHERE at > %(since)s AND {_OURS} AND action IN ('turn.failed', 'turn.fell_back')
    ) failures WHERE words IS NOT NULL GROUP BY words ORDER BY 2 DESC, 1 LIMIT 20
"""  # noqa: S608
_TOOLSETS = """
    SELECT name, jsonb_array_length(tools), seen_at FROM toolset WHERE seen_at > %(since)s ORDER BY seen_at DESC, name LIMIT 200
"""
