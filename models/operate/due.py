"""Due rows of all workspaces. Each function returns a bounded number of ids, on which a sweep acts one by one.

The functions run as `assent_system`, without locks, in the sweeps' process alone. The acting transaction locks the session and
checks again. A row at which a sweep failed is left out until its pause is over (`models.database.failure`), so that rows that
always fail do not hold up the rest.
"""

from dataclasses import dataclass
from datetime import datetime

from models.database.clock import STARTED
from models.database.failure import steps_back
from models.database.leased import Leased
from models.database.tables import table_of
from models.database.transactions import transaction
from models.flow.spend import limits
from models.operate.removals import LATE
from models.session.approval.kinds import budget, tool_call
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

BATCH = 500
YOUNG_SECONDS = 60
"""Longer than any transaction may take. A call that people were asked about while the grant was created is judged again."""


HALTED = "ARRAY(SELECT workspace_id::text FROM halt WHERE ended_at IS NULL)"
"""The workspaces that are halted. Nothing begins or expires in them."""


@dataclass(frozen=True)
class Due:
    """A row on which a sweep must act."""

    id: str
    session_id: str
    workspace_id: str


def sessions_of(rows: list[Due]) -> list[tuple[str, str]]:
    """Return the ids of the rows' sessions and workspaces, each session once."""
    return list({row.session_id: (row.session_id, row.workspace_id) for row in rows}.values())


def removals(limit: int | None = None) -> list[Due]:
    """Return the deleted sessions and endpoints that may still have rows, the oldest first. `session_id` is their own id."""
    with transaction(role="system") as db:
        return [Due(*row) for row in db.rows(_REMOVALS, limit=limit or BATCH, late=LATE)]


_REMOVALS = f"""
    SELECT subject_id, subject_id, workspace_id FROM removal WHERE (emptied_at IS NULL OR created_at < {STARTED} - %(late)s)
    AND NOT {steps_back("remove_deleted", "removal.subject_id")} ORDER BY created_at LIMIT %(limit)s
"""  # noqa: S608


def held_calls(limit: int | None = None) -> list[Due]:
    """Return the client calls that were allowed during a halt which has ended."""
    return _find("tool_call", "end_halts", "status = 'held'", "due_at", limit)


@dataclass(frozen=True)
class EndedHalt:
    """A halt that has ended, and that may still have to move deadlines."""

    id: str
    workspace_id: str
    ended_at: datetime


def ended_halts(limit: int | None = None) -> list[EndedHalt]:
    """Return the halts that have ended and are not settled, the oldest first."""
    with transaction(role="system") as db:
        return [EndedHalt(*row) for row in db.rows(_ENDED_HALTS, limit=limit or BATCH)]


_ENDED_HALTS = f"""
    SELECT id, workspace_id, ended_at FROM halt
    WHERE ended_at IS NOT NULL AND settled_at IS NULL AND NOT {steps_back("end_halts", "halt.id")} ORDER BY ended_at LIMIT %(limit)s
"""  # noqa: S608


def stopped_by(halt: EndedHalt, limit: int | None = None, *, failing: bool = False) -> list[Due]:
    """Return the sessions with a deadline that the halt must still move. `failing`: also those at which the sweep just failed."""
    values = {"workspace": halt.workspace_id, "ended": halt.ended_at, "failing": failing, "limit": limit or BATCH}
    with transaction(role="system") as db:
        return [Due(session_id, session_id, halt.workspace_id) for (session_id,) in db.rows(_STOPPED_BY, **values)]


_STOPPED_BY = f"""
    SELECT session_id FROM (
        SELECT session_id FROM approval WHERE workspace_id = %(workspace)s AND status = 'pending' AND deadline_from < %(ended)s
        UNION
        SELECT session_id FROM tool_call
        WHERE workspace_id = %(workspace)s AND status = 'with_client' AND answer_by IS NOT NULL AND deadline_from < %(ended)s
    ) stopped
    WHERE %(failing)s OR NOT {steps_back("end_halts", "stopped.session_id")} LIMIT %(limit)s
"""  # noqa: S608


def lapsed(table: type[Leased], limit: int | None = None) -> list[Due]:
    """Return the rows whose worker no longer renews its lease. Messages lock no session: their `session_id` is empty."""
    if table in _OF_SESSIONS:
        return _find(table_of(table).name, "rescue", "status = 'running'", "lease_until", limit)
    with transaction(role="system") as db:
        return [Due(*row) for row in db.rows(_LAPSED_MESSAGES.format(table=table_of(table).name), limit=limit or BATCH)]


_OF_SESSIONS = (Turn, ToolCall)
_LAPSED_MESSAGES = f"""
    SELECT id, '', workspace_id FROM {{table}} WHERE status = 'running' AND lease_until <= {STARTED}
    AND NOT {steps_back("rescue", "{table}.id")} ORDER BY lease_until LIMIT %(limit)s
"""  # noqa: S608 - names of our own


def overdue_approvals(limit: int | None = None) -> list[Due]:
    """Return pending approvals whose deadline has passed, the longest overdue first."""
    return _find("approval", "expire_approvals", "status = 'pending'", "expires_at", limit)


def workspaces_at_limits() -> list[str]:
    """Return the workspaces with a pending approval at a spend limit."""
    with transaction(role="system") as db:
        return [workspace_id for (workspace_id,) in db.rows(_AT_LIMITS, tool=limits.TOOL)]


_AT_LIMITS = f"""
    SELECT DISTINCT workspace_id FROM approval
    WHERE status = 'pending' AND {budget.KIND.sql} AND tool = %(tool)s AND workspace_id <> ALL ({HALTED})
"""  # noqa: S608


def unanswered_calls(limit: int | None = None) -> list[Due]:
    """Return the calls whose client sent no result in time, the longest overdue first."""
    return _find("tool_call", "expire_calls", "status = 'with_client'", "answer_by", limit)


def approvals_to_remind(limit: int | None = None) -> list[Due]:
    """Return pending approvals whose reminder is due, the longest overdue first."""
    return _find("approval", "remind_approvers", "status = 'pending'", "remind_at", limit)


@dataclass(frozen=True)
class NewGrant:
    """A grant that may cover waiting calls: people were asked about them in transactions that could not see the grant yet."""

    id: str
    workspace_id: str
    swept_to: str | None
    ripe: bool
    """True if the grant is so old that every transaction sees it."""


def new_grants(grant_id: str | None = None, limit: int | None = None) -> list[NewGrant]:
    """Return the grants that sweeps have not finished, the oldest first; or only `grant_id`, if it is one of them."""
    one = "AND id = %(grant)s" if grant_id else ""
    with transaction(role="system") as db:
        return [NewGrant(*row) for row in db.rows(_NEW_GRANTS.format(one=one), grant=grant_id, limit=limit or BATCH)]


_NEW_GRANTS = f"""
    SELECT id, workspace_id, swept_to, created_at < {STARTED} - interval '{YOUNG_SECONDS} seconds' FROM approval_grant
    WHERE revoked_at IS NULL AND swept_at IS NULL {{one}} AND NOT {steps_back("release_granted", "approval_grant.id")}
    ORDER BY created_at LIMIT %(limit)s
"""  # noqa: S608


def waiting_for(grant: NewGrant, limit: int | None = None) -> list[Due]:
    """Return sessions with waiting calls that the grant may cover, those after `swept_to`."""
    with transaction(role="system") as db:
        rows = db.rows(_WAITING_FOR, grant=grant.id, behind=grant.swept_to or "", limit=limit or BATCH)
        return [Due(session_id, session_id, workspace_id) for session_id, workspace_id in rows]


# By index: a grant of a session finds the session's calls, a grant of an agent the agent's approvals.
_WAITING_FOR = f"""
    SELECT turn.session_id, turn.workspace_id FROM approval_grant given
    JOIN turn ON turn.session_id = given.session_id AND turn.workspace_id = given.workspace_id JOIN tool_call ON turn_id = turn.id
    WHERE given.id = %(grant)s AND turn.session_id > %(behind)s AND tool_call.status = 'asked'
    UNION
    SELECT approval.session_id, approval.workspace_id FROM approval JOIN approval_grant given
    ON given.session_id IS NULL AND given.agent_id = approval.agent_id AND given.tool = approval.tool
    WHERE given.id = %(grant)s AND approval.workspace_id = given.workspace_id AND approval.session_id > %(behind)s
    AND approval.status = 'pending' AND approval.{tool_call.KIND.sql}
    ORDER BY session_id LIMIT %(limit)s
"""  # noqa: S608


def _find(table: str, sweep: str, condition: str, due: str, limit: int | None) -> list[Due]:
    """Return rows that meet the condition and whose time in column `due` has passed, the longest due first.

    Leaves out sessions at which the sweep failed just now."""
    statement = f"""
        SELECT id, session_id, workspace_id FROM {table}
        WHERE {condition} AND {due} <= {STARTED} AND workspace_id <> ALL ({HALTED})
        AND NOT {steps_back(sweep, f"{table}.session_id")} ORDER BY {due} LIMIT %(limit)s
    """  # noqa: S608 - names of our own
    with transaction(role="system") as db:
        return [Due(*row) for row in db.rows(statement, limit=limit or BATCH)]
