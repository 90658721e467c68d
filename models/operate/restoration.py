"""A restored installation: what its database knows ends at the backup, and what was done after it is not in it.

loaded: every workspace is halted, sign-ins have ended, pending approvals are marked     `after_load`, in the loading transaction
settled: calls that may have run after the backup are unknown, and people are asked      `settle`
resumed: an operator has confirmed keys, grants and people                               `resume`
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from models.audit import acts
from models.audit.principal import Principal, system
from models.audit.text import Text
from models.database import clock
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.carry_on.next_step import stop_all
from models.flow.lock import lock
from models.flow.run.results import doubt_call
from models.pure.times import rfc3339
from models.session.approval.grant import Grant
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt

STARTER = "system:restore"
"""The principal of a halt that the restore started. One that was open in the backup stays open after the resume."""
BATCH = 200
"""Sessions that are read at once."""
# The halt begins with the backup, so that no deadline passes because of the time between backup and restore. And no deadline allows
# a call that may have run.
_LOADED = """
    UPDATE halt SET backup_at = {at}, doubts_calls = {doubts}, restored_at = NULL WHERE ended_at IS NULL;
    INSERT INTO halt (id, workspace_id, reason, started_at, started_by, backup_at, doubts_calls)
    SELECT 'halt_' || upper(left(md5(id || clock_timestamp()), 26)), id, {reason}, {at}, {starter}, {at}, {doubts}
    FROM workspace WHERE NOT EXISTS (SELECT FROM halt WHERE workspace_id = workspace.id AND ended_at IS NULL);
    UPDATE approval SET backup_at = {at}, on_timeout = CASE on_timeout WHEN 'allow' THEN 'deny' ELSE on_timeout END
    WHERE status = 'pending';
    UPDATE sign_in SET ended_at = assent_now() WHERE ended_at IS NULL;
"""


def after_load(backup_at: datetime, *, doubts_calls: bool) -> str:
    """Return the statements that end the transaction in which a backup is loaded, so that nothing begins after its commit.

    `doubts_calls`: calls that were not settled in the backup may have run after it.
    """
    values = {
        "at": backup_at.isoformat(),
        "doubts": doubts_calls,
        "reason": f"The installation was restored from the backup of {rfc3339(backup_at)}.",
        "starter": STARTER,
    }
    return sql.SQL(_LOADED).format(**{name: sql.Literal(value) for name, value in values.items()}).as_string(None)


@dataclass(frozen=True)
class State:
    """A workspace's halt after a restore."""

    workspace_id: str
    backup_at: datetime
    is_settled: bool
    doubts_calls: bool


def states() -> list[State]:
    """Return the workspaces that wait for the resume after a restore."""
    with transaction(role="system") as db:
        workspaces = [workspace_id for (workspace_id,) in db.rows("SELECT id FROM workspace ORDER BY id")]
    halts = []
    for workspace_id in workspaces:
        with transaction(workspace_id) as db:
            halts.append(Halt.current(db))
    return [
        State(halt.workspace_id, halt.backup_at, halt.restored_at is not None, halt.doubts_calls)
        for halt in halts
        if halt and halt.backup_at
    ]


def doubt_calls(workspace_id: str) -> None:
    """Have `settle` doubt the workspace's calls, because something was done after the backup."""
    with transaction(workspace_id) as db:
        halt = Halt.current(db)
        if halt is not None and halt.backup_at:
            halt.doubts_calls = True


def settle(state: State, principal: Principal, reason: str) -> int:
    """Have people settle the workspace's calls that may have run after the backup. Returns their number. Idempotent.

    A crash in between leaves the workspace halted, and the next call goes on. The last transaction records the act.
    """
    count = 0
    if state.is_settled:
        return count  # a call that people let run again since is not doubted again
    for session_id in _sessions(state.workspace_id, _UNSETTLED) if state.doubts_calls else ():
        with transaction(state.workspace_id) as db:
            count += _doubt(db, session_id, state.backup_at)
    with transaction(state.workspace_id) as db:
        halt = Halt.current(db)
        if halt is not None and halt.restored_at is None:
            halt.restored_at = clock.now(db)
            marked_count = db.value("SELECT count(*) FROM approval WHERE status = 'pending' AND backup_at IS NOT NULL")
            total = db.value(_DOUBTED, since=halt.started_at)
            facts = {"backup_at": rfc3339(state.backup_at), "calls": total, "approvals": marked_count, "reason": Text(reason)}
            acts.record(db, principal, "workspace.restored", halt.id, facts)
    return count


def _doubt(db: Db, session_id: str, backup_at: datetime) -> int:
    locked = lock(db, session_id, system("restore", db.workspace_id))
    calls = [call for each in locked.each for call in ToolCall.of_turn(each)]
    doubtful = [call for call in calls if call.status in _MAY_HAVE_RUN and not call.idempotent]
    for call in doubtful:
        why = f"This call was {call.status} in the backup of {rfc3339(backup_at)}, and may have run after it."
        doubt_call(locked, call, why)
    return len(doubtful)


_MAY_HAVE_RUN = ("queued", "held", "with_client", "running")
"""The statuses of calls that were allowed. A call that people were asked about needs a decision anyway."""
_UNSETTLED = """
    SELECT DISTINCT session_id FROM tool_call WHERE status IN ('queued', 'held', 'with_client', 'running') AND NOT idempotent
    AND session_id > %(after)s ORDER BY session_id LIMIT %(limit)s
"""
_DOUBTED = "SELECT count(*) FROM audit WHERE at >= %(since)s AND action = 'tool_call.doubted'"
_AT_WORK = """
    SELECT DISTINCT session_id FROM turn WHERE status IN ('queued', 'running') AND session_id > %(after)s
    ORDER BY session_id LIMIT %(limit)s
"""


def _sessions(workspace_id: str, statement: str) -> Iterator[str]:
    after = ""
    while True:
        with transaction(workspace_id) as db:
            ids = [session_id for (session_id,) in db.rows(statement, after=after, limit=BATCH)]
        if not ids:
            return
        yield from ids
        after = ids[-1]


def at_work(workspace_id: str) -> list[str]:
    """Return the sessions whose model will be asked again, and may propose anew what it did after the backup."""
    return list(_sessions(workspace_id, _AT_WORK))


def end_runs(workspace_id: str, principal: Principal) -> int:
    """End the runs of these sessions. Returns their number."""
    session_ids = at_work(workspace_id)
    for session_id in session_ids:
        with transaction(workspace_id) as db:
            stop_all(lock(db, session_id, principal).each, "The installation was restored from a backup.")
    return len(session_ids)


def resume(state: State, principal: Principal) -> None:
    """End the workspace's halt; one that was open in the backup becomes an ordinary halt again. Raises Conflict unless settled."""
    with transaction(state.workspace_id) as db:
        halt = Halt.current(db)
        if halt is None or halt.backup_at is None:
            return
        if halt.restored_at is None:
            raise Conflict("The restore is not finished: calls that may have run are not settled yet.")
        halt.backup_at = None
        if halt.started_by == STARTER:
            Halt.end(db, principal)


def to_confirm(workspace_id: str) -> list[dict[str, str]]:
    """Return what holds again though it may have been revoked after the backup: keys, grants, people, delegations, invitations."""
    with transaction(workspace_id) as db:
        rows = [{"kind": kind, "id": id_, "what": what} for kind, id_, what in db.rows(_HOLDING)]
        grants = db.find(Grant, "WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > assent_now()) ORDER BY id")
        return rows + [{"kind": "grant", "id": grant.id, "what": grant.covers} for grant in grants]


_HOLDING = """
    SELECT 'key', id::text, name || ': ' || array_to_string(scopes, ', ') FROM api_key
    WHERE revoked_at IS NULL AND disabled_at IS NULL AND (expires_at IS NULL OR expires_at > assent_now())
    UNION ALL
    SELECT 'person', person.id, person.email || ': ' || member.role || coalesce(', in ' || (
        SELECT string_agg(g.name, ', ' ORDER BY g.name) FROM membership m JOIN person_group g ON g.id = m.group_id
        WHERE m.person_id = person.id
    ), '')
    FROM member JOIN person ON person.id = member.person_id WHERE member.deactivated_at IS NULL
    UNION ALL
    SELECT 'delegation', id, from_person_id || ' to ' || to_person_id FROM delegation
    WHERE ended_at IS NULL AND ends_at > assent_now()
    UNION ALL
    SELECT 'invitation', id, email || ': ' || role FROM invitation
    WHERE accepted_at IS NULL AND deleted_at IS NULL AND expires_at > assent_now()
    ORDER BY 1, 2
"""
