"""The alarms of the audit in a workspace's row: a sealer refuses its chain, or nobody has sealed it for a while."""

from datetime import UTC, datetime, timedelta

from models.audit.seals import LATE_SECONDS, SignedHead
from models.database import clock
from models.database.transactions import transaction

LOOK_BACK_SECONDS = 3600
"""How far the first look for unsealed acts goes back."""
MOST_WORKSPACES = 100
"""Workspaces whose seals one report compares with their acts."""


def of(workspace_id: str) -> str | None:
    """Return why the workspace's audit is not sealed, or None."""
    with transaction(workspace_id) as db:
        reason: str | None = db.value("SELECT coalesce(seal_alarm, seal_stopped) FROM workspace WHERE id = %(id)s", id=workspace_id)
        return reason


def acted(since: datetime | None) -> tuple[dict[str, datetime], datetime]:
    """Return the workspaces with acts that should be sealed by now, with the time of the last one, and the end of the search.

    The search begins at `since`, or an hour ago.
    """
    with transaction(role="system") as db:
        until = clock.now(db) - timedelta(seconds=LATE_SECONDS)
        since = since or until - timedelta(seconds=LOOK_BACK_SECONDS)
        rows = db.rows(_ACTED, since=since, until=until)
    return dict(rows), until


def unsealed() -> list[tuple[str, datetime]]:
    """Return workspaces with acts of the last hour that should be sealed by now, with the time of their last signed seal.

    Leaves out workspaces of which nothing was ever signed. Looks at MOST_WORKSPACES at most.
    """
    behind = []
    for workspace_id, at in list(acted(None)[0].items())[:MOST_WORKSPACES]:
        with transaction(workspace_id) as db:
            newest = SignedHead.newest(db, workspace_id)
        if newest and newest.at < at:
            behind.append((workspace_id, newest.at))
    return behind


def stop(workspace_id: str, at: datetime, reason: str) -> str | None:
    """Store and return why the workspace's audit stands still, if the act of the time `at` is not sealed. Else return None."""
    with transaction(workspace_id) as db:
        newest = SignedHead.newest(db, workspace_id)
        if newest and newest.at >= at:
            return None  # another process seals
        since = f"since {newest.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if newest else "yet"
        problem = f"nothing is sealed {since}: {reason}"
        db.write(_STOPPED, id=workspace_id, problem=problem)
        return problem


_ACTED = "SELECT workspace_id, max(at) FROM audit WHERE at > %(since)s AND at <= %(until)s GROUP BY workspace_id"
_STOPPED = "UPDATE workspace SET seal_stopped = %(problem)s WHERE id = %(id)s AND seal_stopped IS DISTINCT FROM %(problem)s"
