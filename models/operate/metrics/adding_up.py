"""Adds up rows that were committed since the last time, so that no transaction of a session has to keep a sum.

Rows are read by their times, window by window, behind the present by more than a transaction lasts. So each row is added once. A
workspace beyond the first ones (`metrics_workspaces`) counts as `OTHERS`, and so does a model beyond MOST_MODELS.
"""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from models.database.exchange import Rows
from models.database.rows import Db
from models.database.transactions import transaction
from models.operate.insights import adding
from models.operate.insights.adding import OF_NOBODY, ClosedAsk
from models.operate.metrics.families import APPROVALS, COST, DECISION_SECONDS, DELIVERIES, FAMILIES, OTHERS, SEALED, TOKENS, UNTIL
from models.pure.json.codec import encode
from models.settings import settings

WINDOW_SECONDS = 60
"""The longest time whose rows one transaction adds up."""
BEHIND_SECONDS = 60
"""Longer than any transaction may take: younger rows may not be committed yet."""
SHORTEST_SECONDS = 1
"""The shortest such time."""
MOST_MODELS = 100

Labels = dict[str, str]


@dataclass
class Sums:
    """What a window adds to the samples."""

    workspaces: frozenset[str]
    """The workspaces with samples of their own."""
    models: set[str]
    """The models with samples of their own."""
    samples: defaultdict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    """By name and the labels' JSON."""

    def count(self, name: str, labels: Labels, amount: float = 1) -> None:
        """Add an amount, which is not negative."""
        self.samples[name, encode(labels)] += amount

    def observe(self, name: str, labels: Labels, value: float) -> None:
        """Add a value to a histogram."""
        bounds = FAMILIES[name].bounds
        place = bisect_left(bounds, value)
        self.count(f"{name}_bucket", labels | {"le": str(float(bounds[place])) if place < len(bounds) else "+Inf"})
        self.count(f"{name}_sum", labels, value)

    def workspace(self, workspace_id: str) -> Labels:
        """Return the label of a workspace."""
        return {"workspace": workspace_id if workspace_id in self.workspaces else OTHERS}

    def model(self, name: str) -> str:
        """Return the label of a model, whose name its provider may choose."""
        if len(self.models) < MOST_MODELS:
            self.models.add(name)
        return name if name in self.models else OTHERS


def add_up(seconds: float) -> int:
    """Add up the rows up to the present, for at most so long. Returns how many rows were added."""
    stop, rows = time.monotonic() + seconds, 0
    while time.monotonic() < stop:
        window = _add_window()
        if window is None:
            break
        rows += window
    return rows


def _add_window() -> int | None:
    """Add up the rows of the next window. Returns how many; None if there is no window yet, or another process adds it up."""
    with transaction(role="system") as db:
        windows = db.rows(_WINDOW, name=UNTIL, longest=WINDOW_SECONDS, shortest=SHORTEST_SECONDS, behind=BEHIND_SECONDS)
        if not windows:
            return None
        [(since, till)] = windows
        workspaces = frozenset(row[0] for row in db.rows(_WORKSPACES, most=settings().metrics_workspaces))
        models = {row[0] for row in db.rows(_MODELS, name=f"{TOKENS}_sum")}
        sums = Sums(workspaces, models)
        times = {"since": since, "till": till}
        asks = [ClosedAsk(*row) for row in db.rows(_APPROVALS, **times)]
        count = _approvals(sums, asks)
        count += _requests(sums, db.rows(_REQUESTS, **times))
        for workspace_id, status, number in db.rows(_DELIVERIES, **times):
            result = "delivered" if status == "done" else "failed"
            sums.count(DELIVERIES, sums.workspace(workspace_id) | {"result": result}, number)
            count += number
        adding.add(db, asks)
        _write(db, sums, till)
    return count


def _approvals(sums: Sums, asks: Sequence[ClosedAsk]) -> int:
    for ask in asks:
        workspace = sums.workspace(ask.workspace_id)
        sums.count(APPROVALS, workspace | {"outcome": ask.outcome, "channel": ask.channel})
        if ask.seconds is not None and ask.channel not in OF_NOBODY:  # the wait for a decision is the time of those who look
            sums.observe(DECISION_SECONDS, workspace, max(ask.seconds, 0))
    return len(asks)


def _requests(sums: Sums, rows: Rows) -> int:
    for workspace_id, provider, model, estimated, cost, tokens_in, tokens_out in rows:
        if cost:
            sums.count(COST, sums.workspace(workspace_id), float(cost * Decimal(100)))
        if estimated:
            continue
        about = {
            "gen_ai_operation_name": "chat",
            "gen_ai_provider_name": provider,
            "gen_ai_response_model": sums.model(model),
        }
        sums.observe(TOKENS, about | {"gen_ai_token_type": "input"}, tokens_in)
        sums.observe(TOKENS, about | {"gen_ai_token_type": "output"}, tokens_out)
    return len(rows)


def _write(db: Db, sums: Sums, till: float) -> None:
    names, labels = zip(*sorted(sums.samples), strict=True) if sums.samples else ((), ())
    values = [sums.samples[key] for key in zip(names, labels, strict=True)]
    db.write(_ADD, names=list(names), labels=list(labels), values=values)
    db.write("UPDATE metric SET value = %(till)s WHERE name = %(name)s", till=till, name=UNTIL)


def reach_seal(sealed_until: float) -> None:
    """Record that all acts of the audit are sealed up to this time, in seconds since 1970."""
    with transaction(role="system") as db:
        db.write(_REACH, name=SEALED, value=sealed_until)


# The lock keeps a second sweep out, which skips the window. A time is kept as the number that the next window begins with.
_WINDOW = """
    SELECT value, till FROM (SELECT value FROM metric WHERE name = %(name)s FOR NO KEY UPDATE SKIP LOCKED) reached
    CROSS JOIN LATERAL (
        SELECT least(value + %(longest)s, extract(epoch FROM assent_now())::float8 - %(behind)s) AS till
    ) next WHERE till >= value + %(shortest)s
"""
_WORKSPACES = "SELECT id FROM workspace ORDER BY id LIMIT %(most)s"
_MODELS = "SELECT DISTINCT labels ->> 'gen_ai_response_model' FROM metric WHERE name = %(name)s"
_APPROVALS = """
    SELECT workspace_id, outcome, channel, seconds, tool, agent_id, person_id, created_at
    FROM assent_closed_approvals(to_timestamp(%(since)s), to_timestamp(%(till)s))
"""
_REQUESTS = """
    SELECT workspace_id, provider, model, estimated, cost,
        input_tokens + cache_read_input_tokens + cache_creation_input_tokens, output_tokens
    FROM turn_usage WHERE at > to_timestamp(%(since)s) AND at <= to_timestamp(%(till)s)
"""
_DELIVERIES = """
    SELECT workspace_id, status, count(*) FROM delivery
    WHERE ended_at > to_timestamp(%(since)s) AND ended_at <= to_timestamp(%(till)s) GROUP BY workspace_id, status
"""
_ADD = """
    INSERT INTO metric (name, labels, value)
    SELECT name, labels::jsonb, value
    FROM unnest(%(names)s::text[], %(labels)s::text[], %(values)s::float8[]) AS added (name, labels, value)
    ON CONFLICT (name, labels) DO UPDATE SET value = metric.value + excluded.value
"""
_REACH = """
    INSERT INTO metric (name, labels, value) VALUES (%(name)s, '{}', %(value)s)
    ON CONFLICT (name, labels) DO UPDATE SET value = greatest(metric.value, excluded.value)
"""
