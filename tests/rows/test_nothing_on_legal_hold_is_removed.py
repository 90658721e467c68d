"""What is on legal hold is not deleted or erased, whoever asks. A refusal names the hold, and the audit who set and released it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from crashes.processes import wait_for
from doors.served import Caller, bad, good, key
from rows.stage import Stage, call, say

from models.audit import erasing, legal_hold
from models.audit.acts import Audit
from models.audit.legal_hold import LegalHold
from models.database.transactions import transaction
from models.errors import Conflict, Invalid
from models.flow.begin import sessions
from models.operate import removals
from models.outbox import removal
from models.session.event.row import Event

REASON = "Case 2026-114"


@pytest.fixture
def caller(api: str, stage: Stage) -> Iterator[Caller]:
    """A client with a key of all scopes."""
    with Caller(api, key(stage)) as client:
        yield client


@pytest.fixture
def session_id(stage: Stage) -> str:
    """A session at rest in which a person denied a call with a text."""
    session_id = stage.session(bash="always_ask")
    stage.message(session_id)
    [asked] = stage.reply(session_id, call())
    stage.confirm(session_id, asked.id, "deny", deny_message="Anna says no.")
    stage.reply(session_id, say("Then not."))
    return session_id


def hold(stage: Stage, session_id: str | None = None) -> LegalHold:
    with transaction(stage.workspace_id) as db:
        return LegalHold.set_on(db, stage.principal, session_id, REASON)


def release(stage: Stage, row: LegalHold) -> None:
    with transaction(stage.workspace_id) as db:
        LegalHold.of_id(db, row.id).release(db, stage.principal)


@pytest.mark.parametrize("whole_workspace", [False, True])
def test_a_session_on_hold_is_not_deleted_until_every_hold_is_released(
    stage: Stage, session_id: str, whole_workspace: bool
) -> None:
    first, second = hold(stage, None if whole_workspace else session_id), hold(stage, session_id)
    for row in (first, second):
        with pytest.raises(Conflict, match=f"{row.id}.*set by api_key:key_test.*{REASON}") as refusal:
            stage.locked(session_id, sessions.delete)
        assert refusal.value.winner
        assert refusal.value.winner["id"] == row.id
        assert stage.read(session_id).id == session_id
        release(stage, row)
    stage.locked(session_id, sessions.delete)


def test_another_session_is_deleted_meanwhile(stage: Stage, session_id: str) -> None:
    hold(stage, session_id)
    other = stage.session()
    stage.locked(other, sessions.delete)
    assert sessions.gone([session_id, other]) == {other}


def test_the_rows_of_a_deleted_session_stay_if_the_workspace_is_put_on_hold_before_they_are_removed(
    stage: Stage, session_id: str
) -> None:
    stage.locked(session_id, sessions.delete)
    row = hold(stage)
    assert not removals.remove_batch(stage.workspace_id, session_id)
    release(stage, row)
    assert removals.remove_batch(stage.workspace_id, session_id), "rows are left to remove"


def test_a_hold_that_is_set_while_rows_are_removed_keeps_them(stage: Stage, session_id: str) -> None:
    """The hold commits after the removal has looked for holds, and before the removal commits."""
    stage.locked(session_id, sessions.delete)
    with ThreadPoolExecutor() as pool:
        with transaction(stage.workspace_id) as db:
            LegalHold.set_on(db, stage.principal, session_id, REASON)
            has_more = pool.submit(removals.remove_batch, stage.workspace_id, session_id)
            wait_for("the removal", lambda: has_more.done() or waiting(stage))
        assert has_more.result() is False
    with transaction(stage.workspace_id) as db:
        removal.sees(db, session_id)
        assert db.find(Event, "WHERE session_id = %(id)s", id=session_id)


def waiting(stage: Stage) -> bool:
    """True while a transaction waits for the lock of another one."""
    with transaction(stage.workspace_id) as db:
        return bool(db.value("SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"))


def test_texts_of_the_audit_on_hold_are_not_erased(stage: Stage, session_id: str) -> None:
    by = str(stage.principal)
    row = hold(stage, session_id)
    with transaction(stage.workspace_id) as db, pytest.raises(Conflict, match=row.id):
        erasing.erase(db, stage.principal, chain=session_id)
    with transaction(stage.workspace_id) as db:
        erasure = erasing.erase(db, stage.principal, by=by)
    assert session_id not in erasure.acts
    assert erasure.on_hold > 0
    workspace_hold = hold(stage)
    with transaction(stage.workspace_id) as db, pytest.raises(Conflict, match="the workspace is on hold"):
        erasing.erase(db, stage.principal, by=by)
    for each in (row, workspace_hold):
        release(stage, each)
    with transaction(stage.workspace_id) as db:
        erasure = erasing.erase(db, stage.principal, by=by)
    assert session_id in erasure.acts
    assert erasure.on_hold == 0


def test_a_session_on_hold_works_as_before(stage: Stage, session_id: str) -> None:
    hold(stage, session_id)
    stage.message(session_id)
    stage.reply(session_id, say("Still here."))
    assert stage.read(session_id).status == "idle"


def test_the_audit_says_who_set_and_who_released_a_hold_and_why_is_an_erasable_text(stage: Stage, session_id: str) -> None:
    release(stage, hold(stage, session_id))
    with transaction(stage.workspace_id) as db:
        acts = db.find(Audit, "WHERE action LIKE 'legal_hold.%%' ORDER BY seq")
        assert [(act.action, act.subject_id, act.principal) for act in acts] == [
            ("legal_hold.set", session_id, "api_key:key_test"),
            ("legal_hold.released", session_id, "api_key:key_test"),
        ]
        assert REASON not in str([act.details for act in acts])


def test_a_hold_is_on_a_session_of_this_workspace_or_on_the_audit_of_a_deleted_one(stage: Stage, session_id: str) -> None:
    with pytest.raises(Invalid, match="not found"):
        hold(Stage(), session_id)
    stage.locked(session_id, sessions.delete)
    hold(stage, session_id)
    with transaction(stage.workspace_id) as db:
        assert legal_hold.find(db, session_id)
        assert not db.find(Event, "WHERE session_id = %(id)s", id=session_id), "the session stays deleted"


def test_one_definition_in_sql_and_in_python(stage: Stage, session_id: str) -> None:
    sql = f"SELECT {legal_hold.held_sql('session.workspace_id', 'session.id')} FROM session WHERE id = %(id)s"

    def both() -> set[bool]:
        with transaction(stage.workspace_id) as db:
            return {bool(db.value(sql, id=session_id)), legal_hold.find(db, session_id) is not None}

    assert both() == {False}
    for on in (session_id, None, stage.session()):
        row = hold(stage, on)
        assert both() == {on in {session_id, None}}
        release(stage, row)
        assert both() == {False}


def test_the_api_sets_lists_and_releases_holds(stage: Stage, caller: Caller, api: str, session_id: str) -> None:
    row = good(caller.post("/v1/legal_holds", json={"session_id": session_id, "reason": f" {REASON} "}))
    assert (row["session_id"], row["reason"], row["released_at"]) == (session_id, REASON, None)
    message = bad(caller.delete(f"/v1/sessions/{session_id}"), 409, row["id"])
    assert "Release the hold first" in str(message)
    everything = good(caller.post("/v1/legal_holds", json={"reason": REASON}))
    assert good(caller.get("/v1/legal_holds", params={"session_id": session_id}))["data"] == [row]
    released = good(caller.delete(f"/v1/legal_holds/{row['id']}"))
    assert released["released_by"] == row["created_by"]
    assert good(caller.delete(f"/v1/legal_holds/{row['id']}")) == released == good(caller.get(f"/v1/legal_holds/{row['id']}"))
    assert good(caller.get("/v1/legal_holds", params={"open": "true"}))["data"] == [everything]
    bad(caller.post("/v1/legal_holds", json={"session_id": "sesn_unknown", "reason": REASON}), 400, "session_id")
    bad(caller.post("/v1/legal_holds", json={}), 400, "reason")
    with Caller(api, key(stage, "read", "approvals", "sessions")) as other:
        bad(other.post("/v1/legal_holds", json={"reason": REASON}), 403, "'admin'")
        bad(other.delete(f"/v1/legal_holds/{everything['id']}"), 403, "'admin'")


def test_a_workspace_says_how_long_it_keeps_its_audit(caller: Caller) -> None:
    assert good(caller.get("/v1/policy"))["retention"] is None
    assert good(caller.post("/v1/policy", json={"retention": {"audit_days": 730}}))["retention"] == {"audit_days": 730}
    assert good(caller.post("/v1/policy", json={"model": None}))["retention"] == {"audit_days": 730}
    bad(caller.post("/v1/policy", json={"retention": {"audit_days": 0}}), 400, "retention.audit_days")
    assert good(caller.post("/v1/policy", json={"retention": {"audit_days": None}}))["retention"] is None
