"""The sweep that finds waiting lists that are too long, and raises and ends their alarms: on pages, as a metric, and by message."""

from collections.abc import Sequence
from datetime import datetime

from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.notices.channel import Channel
from models.notices.flood import Flood, deciding_people, waiting
from models.notices.notification import Notification
from models.notices.recipients import give_default
from models.operate.metrics.families import FLOODS, OTHERS
from models.settings import settings

MOST_WORKSPACES = 1000
MOST_PEOPLE = 500
"""People of a workspace at whose waiting lists one sweep looks: those of the earliest ids."""


def to_watch() -> list[str]:
    """Return the workspaces in which enough approvals wait for a flood, or which have one. None if floods are off."""
    with transaction(role="system") as db:
        values = {
            "before": max(settings().flood_approvals - 1, 0),
            "most": MOST_WORKSPACES,
            "is_on": settings().flood_approvals > 0,
        }
        return [workspace_id for (workspace_id,) in db.rows(_TO_WATCH, **values)]


def watch(workspace_id: str) -> int:
    """Begin and end the floods of a workspace. Returns how many began or ended."""
    most = settings().flood_approvals
    with transaction(workspace_id) as db:
        db.write("SELECT pg_advisory_xact_lock(hashtextextended('floods ' || %(id)s, 0))", id=workspace_id)
        now = clock.now(db)
        floods = {row.person_id: row for row in Flood.each(db)}
        people = deciding_people(db, MOST_PEOPLE)
        counts = waiting(db, people, now, most) if most else {}
        over = [row for person_id, row in floods.items() if counts.get(person_id, 0) <= most // 2]
        for row in over:
            db.delete(row)
        more = [person_id for person_id in people if most and counts.get(person_id, 0) >= most and person_id not in floods]
        rows = [Flood.begin(db, person_id, now) for person_id in more]
        _notify(db, rows, now)
        return len(over) + len(rows)


def publish() -> None:
    """Write the number of floods of each workspace to the metric."""
    with transaction(role="system") as db:
        db.write("SELECT pg_advisory_xact_lock(hashtextextended('floods', 0))")  # two processes would wait for each other's rows
        db.write("UPDATE metric SET value = 0 WHERE name = %(name)s AND value <> 0", name=FLOODS)
        db.write(_PUBLISH, name=FLOODS, others=OTHERS, most=settings().metrics_workspaces)


def _notify(db: Db, floods: Sequence[Flood], now: datetime) -> None:
    """Tell each flood to its person and to the admins, by all of their channels."""
    if not floods:
        return
    give_default(db, now)
    channels = db.find(Channel, _CHANNELS, people=[row.person_id for row in floods])
    admins = {person_id for (person_id,) in db.rows(_ADMINS)}
    for row in floods:
        for channel in channels:
            if channel.person_id in {row.person_id, *admins}:
                Notification.alone(db, channel, "flood", row.id)


_TO_WATCH = """
    SELECT id FROM workspace WHERE id IN (SELECT workspace_id FROM flood) OR (%(is_on)s AND EXISTS (
        SELECT FROM approval WHERE approval.workspace_id = workspace.id AND status = 'pending' OFFSET %(before)s LIMIT 1
    )) ORDER BY id LIMIT %(most)s
"""
_ADMINS = """
    SELECT person_id FROM member
    WHERE workspace_id = current_setting('assent.workspace') AND deactivated_at IS NULL AND role = 'admin'
"""
_CHANNELS = f"""
    WHERE state = 'enabled' AND NOT for_everyone AND (
        person_id = ANY(%(people)s) OR person_id IN ({_ADMINS})
    ) ORDER BY id
"""
_PUBLISH = """
    INSERT INTO metric (name, labels, value)
    SELECT %(name)s, jsonb_build_object('workspace', label), count(*) FROM (
        SELECT CASE WHEN workspace_id IN (SELECT id FROM workspace ORDER BY id LIMIT %(most)s) THEN workspace_id ELSE %(others)s END
            AS label
        FROM flood
    ) floods GROUP BY label
    ON CONFLICT (name, labels) DO UPDATE SET value = excluded.value
"""
