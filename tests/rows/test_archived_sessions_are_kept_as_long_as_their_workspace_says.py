"""A session that is archived whole is deleted once its last event is older than its workspace keeps it; others, and holds, stay."""

import pytest
from own_database import Clock
from rows.archived import MONTH, archive, conversation, parts
from rows.stage import Stage, say

from models.audit.acts import Audit
from models.audit.legal_hold import LegalHold
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.operate import archive_retention
from models.operate.archive_retention import OldSession
from models.workspace.row import Workspace
from workers.sweeps import deleting

YEAR = 365 * 86_400


@pytest.fixture
def session_id(stage: Stage, clock: Clock) -> str:
    """A session that is archived whole."""
    session_id = conversation(stage)
    clock.advance(MONTH)
    assert archive(stage, session_id)
    return session_id


def keeps(stage: Stage, days: int | None) -> None:
    """Have the workspace keep archived sessions for so many days; None: for ever."""
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"retention": {"archived_days": days} if days else None})


def is_there(stage: Stage, session_id: str) -> bool:
    return sessions.gone([session_id]) == set()


def test_it_is_deleted_with_its_parts_once_it_is_too_old(stage: Stage, clock: Clock, session_id: str) -> None:
    keeps(stage, 100)
    assert deleting.delete_archived() == ""
    clock.advance(100 * 86_400)
    assert deleting.delete_archived() == "deleted archived sessions: 1"
    assert not is_there(stage, session_id)
    deleting.remove_deleted()
    assert not any(part.status == "kept" for part in parts(stage, session_id))
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE action = 'session.deleted' AND chain = workspace_id")
    assert (act.subject_id, act.principal) == (session_id, "system:sweep.delete_archived")
    assert deleting.delete_archived() == ""


def test_a_workspace_keeps_sessions_for_ever_unless_it_says_otherwise(stage: Stage, clock: Clock, session_id: str) -> None:
    clock.advance(10 * YEAR)
    assert archive_retention.due() == []
    assert not archive_retention.delete(OldSession(session_id, stage.workspace_id))
    keeps(stage, 100)
    assert [session.id for session in archive_retention.due()] == [session_id]


def test_one_on_hold_stays(stage: Stage, clock: Clock, session_id: str) -> None:
    keeps(stage, 100)
    clock.advance(YEAR)
    with transaction(stage.workspace_id) as db:
        hold = LegalHold.set_on(db, stage.principal, session_id, "A case.")
    assert archive_retention.due() == []
    assert not archive_retention.delete(OldSession(session_id, stage.workspace_id)), "the hold was set after the sweep had looked"
    with transaction(stage.workspace_id) as db:
        LegalHold.of_id(db, hold.id).release(db, stage.principal)
    assert deleting.delete_archived()
    assert not is_there(stage, session_id)


def test_one_that_was_used_again_or_is_not_archived_whole_stays(stage: Stage, clock: Clock, session_id: str) -> None:
    keeps(stage, 100)
    clock.advance(YEAR)
    never = conversation(stage)
    due = archive_retention.due()
    assert [session.id for session in due] == [session_id]
    stage.message(session_id)
    assert not archive_retention.delete(due[0]), "a turn is queued"
    stage.reply(session_id, say("Yes?"))
    assert not archive_retention.delete(due[0]), "its last events are not in the archive"
    assert archive_retention.due() == []
    clock.advance(MONTH)
    archive(stage, session_id)
    assert archive_retention.due() == [], "its last event is young"
    assert not archive_retention.delete(due[0]), "a sweep that had found it before sees the same"
    assert is_there(stage, never)
