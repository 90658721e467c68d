"""The reasons why queued work of a workspace waits, for `/readyz` and the page of the system."""

from collections import Counter

from models.database import failure
from models.database.rows import Db
from models.database.transactions import transaction
from models.pure.naming import OURS
from models.pure.times import rfc3339
from models.session.hints import CLAIMABLE, HELD_BACK
from models.workspace.halt import Halt
from models.workspace.toolset import missing

LOOKED_AT = 1000
"""Most queued calls that one report reads."""


def reasons(db: Db) -> list[str]:
    """Return all reasons why work of the transaction's workspace waits or fails: a sentence for each."""
    return [*_held_back(db), *_without_a_worker(db), *_failing(db)]


def held_back(workspace_id: str) -> list[str]:
    """Return why no worker claims queued calls of the workspace: a sentence for each reason."""
    with transaction(workspace_id) as db:
        return _held_back(db)


def without_a_worker(workspace_id: str) -> list[str]:
    """Return a sentence for each toolset that queued calls of the workspace wait for and no worker has."""
    with transaction(workspace_id) as db:
        return _without_a_worker(db)


def failing(workspace_id: str) -> list[str]:
    """Return a sentence for each task that failed at rows of the workspace, or for each kind of its errors."""
    with transaction(workspace_id) as db:
        return _failing(db)


def _held_back(db: Db) -> list[str]:
    first = "SELECT held_back FROM tool_call WHERE status = 'queued' AND held_back IS NOT NULL LIMIT %(limit)s"
    counts = Counter(reason for (reason,) in db.rows(first, limit=LOOKED_AT))
    halt = Halt.current(db)
    halted = [f"everything waits: the workspace is halted since {rfc3339(halt.started_at)} by {halt.started_by}"] if halt else []
    return halted + [f"{count} tool call(s) wait: {reason}" for reason, count in counts.most_common(10)]


def _without_a_worker(db: Db) -> list[str]:
    waiting = {address for (address,) in db.rows(_ADDRESSES, limit=LOOKED_AT)}
    return [f"calls wait: no worker has toolset {address.removeprefix(OURS)}" for address in missing(db, waiting)]


def _failing(db: Db) -> list[str]:
    return [
        f"{task} failed at {subjects} row(s) lately ({error}): the log names them"
        for task, error, subjects in failure.failure_counts(db)
    ]


# Two parts, because each index of queued calls has a part of them.
_ADDRESSES = f"""
    SELECT address FROM (
        (SELECT address FROM tool_call WHERE {CLAIMABLE} AND address IS NOT NULL LIMIT %(limit)s)
        UNION ALL (SELECT address FROM tool_call WHERE {HELD_BACK} AND address IS NOT NULL LIMIT %(limit)s)
    ) waiting
"""  # noqa: S608 - conditions of our own
