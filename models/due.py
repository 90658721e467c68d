"""What is due, over all workspaces: each function finds a bounded number of ids, for a sweep to act on one by one.

They run as `assent_system`, without locks, in the sweeps' process alone. The acting transaction locks the session and looks again.
Other processes call only `gone`, which asks a function of the database, and what readiness says of one workspace.
"""

from collections import Counter
from dataclasses import dataclass

import sqlalchemy as sa

from models.approval import Approval
from models.clock import STARTED, ahead
from models.db import Hint, transaction
from models.grant import Grant
from models.idempotency import Answer
from models.pure.naming import OURS
from models.settings import settings
from models.tool_call import ToolCall
from models.toolset import missing
from models.turn import Turn

BATCH = 500
LOOKED_AT = 1000
"""Calls that readiness looks at, of as many as there may be."""
REHINT_AT_MOST_SECONDS = 60
YOUNG_SECONDS = 60
"""Longer than any transaction may take: what was asked while a grant was given is looked at again."""


@dataclass(frozen=True)
class Due:
    """A row that something is to be done about."""

    id: str
    session_id: str
    workspace_id: str


def queues() -> list[str | None]:
    """Where queued calls wait to be claimed; None is the tools' own queue."""
    with transaction(role="system") as db:
        return [None, *db.scalars(_QUEUES)]


# From one queue to the next by the index: as many steps as queues, however many calls wait in each.
_QUEUES = sa.text("""
    WITH RECURSIVE step (queue) AS (
        (SELECT queue FROM tool_call WHERE status = 'queued' AND queue IS NOT NULL ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT t.queue FROM tool_call t WHERE t.status = 'queued' AND t.queue > step.queue ORDER BY t.queue LIMIT 1)
        FROM step WHERE step.queue IS NOT NULL
    ) SELECT queue FROM step WHERE queue IS NOT NULL
""")


def hints(table: type[Turn] | type[ToolCall], limit: int = BATCH, *, queue: str | None = None) -> list[Hint]:
    """Stamp and return the hints of queued rows that are due and silent for the longer of `rehint_seconds` and half their age.

    Of calls: of those in one queue.
    """
    # Half its age, without dividing an interval: as long ago as the hint came after it was due. A minute at most: a worker that
    # could not take it then may be able to now.
    half = STARTED - table.hinted_at > table.hinted_at - table.due_at
    long = sa.or_(half, table.hinted_at < ahead(-REHINT_AT_MOST_SECONDS))
    silent = sa.or_(table.hinted_at.is_(None), sa.and_(table.hinted_at < ahead(-settings().rehint_seconds), long))
    due = (table.status == "queued", _live(table), table.due_at <= STARTED, silent)
    found = sa.select(table.id).where(*due).order_by(table.due_at).limit(limit)
    if table is ToolCall:
        found = found.where(ToolCall.queue == queue)
    stamp = sa.update(table).where(table.id.in_(found.with_for_update(skip_locked=True))).values(hinted_at=STARTED)
    task = "turn.run" if table is Turn else "tool.run"
    with transaction(role="system") as db:
        rows = db.execute(
            stamp.returning(table.id, table.session_id, table.workspace_id),
            execution_options={"synchronize_session": False},
        )
        return [Hint(task, tuple(row), queue) for row in rows]


def lapsed(table: type[Turn] | type[ToolCall], limit: int = BATCH) -> list[Due]:
    """Rows whose worker stopped renewing."""
    return _find(
        sa.select(table.id, table.session_id, table.workspace_id)
        .where(table.status == "running", _live(table), table.lease_until <= STARTED)
        .order_by(table.lease_until)
        .limit(limit)
    )


def overdue_approvals(limit: int = BATCH) -> list[Due]:
    """Pending approvals whose deadline passed, the longest overdue first."""
    columns = (Approval.id, Approval.session_id, Approval.workspace_id)
    where = (Approval.status == "pending", Approval.expires_at <= STARTED)
    return _find(sa.select(*columns).where(*where).order_by(Approval.expires_at).limit(limit))


def unanswered_calls(limit: int = BATCH) -> list[Due]:
    """Calls whose client gave no result in time, the longest overdue first."""
    columns = (ToolCall.id, ToolCall.session_id, ToolCall.workspace_id)
    where = (ToolCall.status == "with_client", ToolCall.answer_by <= STARTED)
    return _find(sa.select(*columns).where(*where).order_by(ToolCall.answer_by).limit(limit))


def approvals_to_remind(limit: int = BATCH) -> list[Due]:
    """Pending approvals whose reminder is due, the longest overdue first."""
    columns = (Approval.id, Approval.session_id, Approval.workspace_id)
    where = (Approval.status == "pending", Approval.remind_at <= STARTED)
    return _find(sa.select(*columns).where(*where).order_by(Approval.remind_at).limit(limit))


@dataclass(frozen=True)
class NewGrant:
    """A grant that calls may wait for that were asked while it was given, by a transaction that could not see it yet."""

    id: str
    workspace_id: str
    swept_to: str | None
    ripe: bool
    """Whether it is so old that nothing can be asked any more without seeing it."""


def new_grants(grant_id: str | None = None, limit: int = BATCH) -> list[NewGrant]:
    """Those that sweeps have not done with, the oldest first; or one of them."""
    wanted = sa.select(Grant.id, Grant.workspace_id, Grant.swept_to, Grant.created_at < ahead(-YOUNG_SECONDS))
    wanted = wanted.where(Grant.revoked_at.is_(None), Grant.swept_at.is_(None))
    if grant_id:
        wanted = wanted.where(Grant.id == grant_id)
    with transaction(role="system") as db:
        return [NewGrant(*row) for row in db.execute(wanted.order_by(Grant.created_at).limit(limit))]


def waiting_for(grant: NewGrant, limit: int = BATCH) -> list[Due]:
    """Sessions in which calls of the grant's tool wait, behind the one that the sweeps have come to."""
    columns = (Approval.session_id, Approval.workspace_id)
    same = sa.and_(Approval.tool == Grant.tool, Approval.workspace_id == Grant.workspace_id)
    further = Approval.session_id > (grant.swept_to or "")
    where = (Grant.id == grant.id, Approval.status == "pending", Approval.kind == "tool_call", further)
    # Two joins instead of one OR, so that each can go by its index.
    of_session = sa.select(*columns).join(Grant, sa.and_(Grant.session_id == Approval.session_id, same)).where(*where)
    always = sa.and_(Grant.session_id.is_(None), Grant.agent_id == Approval.agent_id, same)
    of_agent = sa.select(*columns).join(Grant, always).where(*where)
    both = of_session.union(of_agent).subquery()
    return _find(sa.select(both.c.session_id, both.c.session_id, both.c.workspace_id).order_by(both.c.session_id).limit(limit))


_GONE = sa.text("SELECT assent_gone_sessions(CAST(:ids AS text[]))")


def gone(session_ids: list[str]) -> set[str]:
    """Those of the ids that are no session's any more, in any workspace. Tools workers ask, which are not `assent_system`."""
    with transaction() as db:
        return set(db.scalars(_GONE, {"ids": session_ids}))


def held_back(workspace_id: str) -> list[str]:
    """Why workers leave queued calls of the workspace: a sentence for each reason."""
    first = sa.select(ToolCall.held_back).where(ToolCall.status == "queued", ToolCall.held_back.is_not(None)).limit(LOOKED_AT)
    with transaction(workspace_id) as db:
        counted = Counter(db.scalars(first))
    return [f"{count} tool call(s) wait: {reason}" for reason, count in counted.most_common(10)]


def without_a_worker(workspace_id: str) -> list[str]:
    """Toolsets that queued calls of the workspace wait for and no worker has: a sentence for each."""
    first = sa.select(ToolCall.address).where(ToolCall.status == "queued", ToolCall.address.is_not(None)).limit(LOOKED_AT)
    with transaction(workspace_id) as db:
        waiting = {address for address in db.scalars(first) if address}
        return [f"calls wait: no worker has toolset {address.removeprefix(OURS)}" for address in missing(db, waiting)]


def forget_answers(limit: int = 10_000) -> None:
    """Delete answers that were kept for retries and are too old for any."""
    old = sa.select(Answer.id).where(Answer.expires_at < STARTED).limit(limit)
    with transaction(role="system") as db:
        db.execute(sa.delete(Answer).where(Answer.id.in_(old)), execution_options={"synchronize_session": False})


def _live(table: type[Turn] | type[ToolCall]) -> sa.ColumnElement[bool]:
    """What the index that finds a turn is conditioned on. Queued or running, it has not ended; Postgres cannot know."""
    return Turn.ended_at.is_(None) if table is Turn else sa.true()


def _find(query: sa.Select[str, str, str] | sa.CompoundSelect[str, str, str]) -> list[Due]:
    with transaction(role="system") as db:
        return [Due(row_id, session_id, workspace_id) for row_id, session_id, workspace_id in db.execute(query)]
