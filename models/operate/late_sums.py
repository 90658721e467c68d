"""The sums that are made behind the commits of what they count: the usage of each day, and the uses of standing grants."""

from models.database import daily_usage
from models.database.transactions import transaction
from models.session.approval import grant_use


def workspaces() -> list[str]:
    """Return the workspaces in which something is not summed yet."""
    with transaction(role="system") as db:
        return [workspace_id for (workspace_id,) in db.rows(_WORKSPACES)]


def add_up(workspace_id: str) -> bool:
    """Sum the next batch of one workspace. Returns True if there may be more."""
    with transaction(workspace_id) as db:
        db.rows(_ALONE)
        uses, attempts = grant_use.add_up(db), daily_usage.add_up(db)  # the order of the release before
    return attempts == daily_usage.BATCH or uses == grant_use.BATCH


_WORKSPACES = "SELECT workspace_id FROM turn_usage WHERE NOT summed UNION SELECT workspace_id FROM grant_use"
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended('late sums ' || current_setting('assent.workspace'), 0))"
"""Two sweeps would change the same sums, in different orders."""
