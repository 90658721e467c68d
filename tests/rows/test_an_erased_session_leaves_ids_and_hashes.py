"""An erased session leaves ids, times and hashes in the audit, which verifies: no table keeps a text that was in the session."""

import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from psycopg import sql
from rows.archived import MONTH, archive, parts, stored
from rows.stage import Stage, call, say

from models.audit import text as audit_text
from models.audit import verifying
from models.audit.acts import Audit
from models.audit.legal_hold import LegalHold
from models.database.tables import Base
from models.database.transactions import transaction
from models.errors import Conflict, NotFound
from models.flow.begin import sessions
from models.operate.personal_data import session as erasing_sessions
from models.outbox.removal import Removal
from models.session.event.row import Event
from models.session.row import Session
from models.workspace.idempotency import Slip
from workers.sweeps import archiving, deleting

SECRET = "the plan of the merger"
REASON = "The customer asked for it."


def told(stage: Stage) -> str:
    """A session at rest whose message, input, result, reply and denial all have the same text."""
    session = stage.session(bash="always_ask", read="always_allow", max_turns=9)
    stage.message(session, SECRET)
    asked, allowed = stage.reply(session, call(command=f"echo {SECRET}"), call("read", file_path=SECRET))
    stage.run_call(allowed)
    stage.confirm(session, asked.id, "deny", deny_message=f"Not {SECRET}")
    stage.reply(session, say(f"Then not {SECRET}."))
    stage.locked(session, lambda locked: setattr(locked.session, "title", SECRET))
    with transaction(stage.workspace_id) as db:
        Slip("ef" * 32, "cd" * 32, replays=True, once=True, seconds=600).store(db, stage.principal, f'["{SECRET}"]', session)
    return session


def erase(stage: Stage, session_id: str) -> None:
    with transaction(stage.workspace_id) as db:
        erasing_sessions.erase(db, session_id, REASON, by=stage.principal)


def tables_with(database_urls: DatabaseUrls, text: str) -> list[str]:
    """The tables with a row that contains the text, as a superuser sees them."""
    with psycopg.connect(database_urls.admin) as db:
        select = sql.SQL("SELECT count(*) FROM {} t WHERE strpos(t::text, %s) > 0")
        counts = {name: db.execute(select.format(sql.Identifier(name)), [text]).fetchone() for name in Base.metadata.tables}
    return sorted(name for name, row in counts.items() if row and row[0])


def test_no_table_keeps_a_text_of_the_session_and_the_audit_verifies(stage: Stage, database_urls: DatabaseUrls) -> None:
    session = told(stage)
    assert {"approval", "audit_text", "call_input", "event", "reply", "session", "stored_response"} <= {
        *tables_with(database_urls, SECRET)
    }
    erase(stage, session)
    deleting.remove_deleted()
    assert tables_with(database_urls, SECRET) == []
    report = verifying.verify(stage.workspace_id, verifying.walk(stage.workspace_id), [])
    assert [problem for problem in report.problems if problem.kind != "unsigned"] == []
    with transaction(stage.workspace_id) as db:
        actions = {row.action for row in db.find(Audit, "WHERE chain = %(chain)s", chain=session)}
        assert {"session.created", "message.received", "approval.decided", "session.deleted"} <= actions
        [act] = db.find(Audit, "WHERE action = 'session.erased'")
        assert (act.principal, act.subject_id) == ("api_key:key_test", session)
        assert audit_text.of(db, [(act.chain, act.seq)])[act.chain, act.seq] == {"reason": REASON}


def test_a_deletion_alone_keeps_the_texts_of_the_audit_and_can_be_followed_by_an_erasure(
    stage: Stage, database_urls: DatabaseUrls, clock: Clock
) -> None:
    session = told(stage)
    stage.locked(session, sessions.delete)
    deleting.remove_deleted()
    assert tables_with(database_urls, SECRET) == ["audit_text", "stored_response"]
    clock.advance(61)
    deleting.remove_deleted()
    for _ in range(2):
        erase(stage, session)
    deleting.remove_deleted()
    assert tables_with(database_urls, SECRET) == []
    clock.advance(61)
    deleting.remove_deleted()
    erase(stage, session)
    with transaction(stage.workspace_id) as db:
        assert db.find(Removal) == []
        assert len(db.find(Audit, "WHERE action = 'session.erased'")) == 1


def test_its_parts_of_the_archive_go_too(stage: Stage, clock: Clock) -> None:
    session = told(stage)
    clock.advance(MONTH)
    assert archive(stage, session) == 1
    [part] = parts(stage, session)
    erase(stage, session)
    assert parts(stage, session) == [], "nobody sees it"
    deleting.remove_deleted()
    archiving.remove_parts()
    assert stored(stage, part) is None


def test_what_waits_is_cancelled_and_what_runs_is_refused(stage: Stage) -> None:
    waiting, running = stage.session(), stage.session()
    stage.propose(waiting)
    stage.message(running)
    with pytest.raises(Conflict, match=r"is running: send user\.interrupt"):
        erase(stage, running)
    erase(stage, waiting)
    with transaction(stage.workspace_id) as db:
        assert [row.id for row in db.find(Session)] == [running]
    stage.send(running, {"type": "user.interrupt"})
    erase(stage, running)
    with transaction(stage.workspace_id) as db:
        assert db.find(Session) == []
        assert db.find(Event) == []


def test_a_session_on_hold_and_one_of_another_workspace_are_not_erased(stage: Stage, database_urls: DatabaseUrls) -> None:
    session = told(stage)
    with transaction(stage.workspace_id) as db:
        hold = LegalHold.set_on(db, stage.principal, session, "A case")
    with pytest.raises(Conflict, match=hold.id):
        erase(stage, session)
    with pytest.raises(NotFound):
        erase(Stage(), session)
    with pytest.raises(NotFound):
        erase(stage, stage.workspace_id)
    deleting.remove_deleted()
    assert "event" in tables_with(database_urls, SECRET)


def test_a_deleted_session_whose_audit_is_on_hold_is_not_erased(stage: Stage, database_urls: DatabaseUrls) -> None:
    session = told(stage)
    stage.locked(session, sessions.delete)
    with transaction(stage.workspace_id) as db:
        hold = LegalHold.set_on(db, stage.principal, session, "A case")
    with pytest.raises(Conflict, match=hold.id):
        erase(stage, session)
    deleting.remove_deleted()
    assert "audit_text" in tables_with(database_urls, SECRET)


def test_a_large_session_is_erased_in_batches_that_a_crash_may_divide(
    stage: Stage, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_text, "ACTS", 1)
    session = told(stage)
    erase(stage, session)
    batches = 0
    while deleting.remove_batch(stage.workspace_id, session):
        batches += 1
    assert batches > 4
    assert tables_with(database_urls, SECRET) == []
