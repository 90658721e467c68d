"""An erased person leaves an opaque id: no table keeps a name or an address, what was decided stays, and the audit verifies."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from own_database import Clock, DatabaseUrls
from people import Somebody, group, invited, member
from psycopg import sql
from rows.stage import Stage
from rows.voting import ask, vote, votes

from models.audit import legal_hold, verifying
from models.audit import text as audit_text
from models.audit.acts import Audit
from models.audit.legal_hold import LegalHold
from models.audit.principal import Principal
from models.audit.text import AuditText
from models.database import ids
from models.database.tables import Base
from models.database.transactions import transaction
from models.errors import Conflict, Invalid, NotFound
from models.notices.channel import Channel, NewChannel
from models.notices.flood import Flood
from models.notices.notification import Notification
from models.notices.slack_reply import Clicker, SlackReply
from models.operate import due, removals
from models.operate.personal_data import person as erasing_people
from models.outbox.removal import Removal
from models.people import password
from models.people.ceremony import Ceremony
from models.people.delegation import Delegation, Terms
from models.people.invitation import Invitation
from models.people.member import Member
from models.people.names import Names
from models.people.passkey import Credential, Passkey
from models.people.person import ERASED_NAME, Identity, Person, everywhere
from models.people.sign_in import SignIn
from models.people.slack_user import SlackUser
from models.session.approval.events import requirements
from models.session.approval.row import Approval
from models.workspace.idempotency import Slip
from workers.sweeps import deleting

EMAIL, NAME = "annabelle.quince@example.com", "Annabelle Quince"
NETWORK, BROWSER = "203.0.113.77", "Quincebrowser/5"
SLACK, SLACK_NAME = "U0QUINCE", "annaslack"
TRACES = (EMAIL, NAME, NETWORK, BROWSER, SLACK, SLACK_NAME, "Annas phone", "sub-quince", "Annas channel", "550 no mailbox of hers")
"""All that identifies the person in the workspace of `known`."""
REASON = "She asked for it."
WITHOUT_ROWS = {"channel", "flood", "identity", "membership", "passkey", "sign_in", "slack_user"}
"""Tables without a row of an erased person."""
WITH_IDS = {"daily_usage", "delegation", "link", "member", "turn_usage", "vote"}
"""Tables that keep the id, and no name or address."""


def known(stage: Stage) -> Somebody:
    """A member with a row in every table that can identify a person."""
    invited(stage, email=EMAIL)
    anna = replace(member(stage, email=EMAIL, groups=[group(stage)]), email=EMAIL)
    by = replace(anna.principal, address=NETWORK)
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE person SET name = %(name)s WHERE id = %(id)s", name=NAME, id=anna.person_id)
        SignIn.start(db, by, "link", user_agent=BROWSER)
        Passkey.add(db, anna.person_id, Credential(ids.new("c").encode(), b"key", 0), name="Annas phone", by=by)
        password.store(db, anna.person_id, "$argon2id$hash", by=by)
        Identity.add(db, "https://issuer.example", "sub-quince", anna.person_id)
        slack_user = SlackUser.of(db, "T0TEAM", SLACK, SLACK_NAME)
        SlackUser.link(db, str(SlackUser.new_link(db, slack_user.id)), by)
        SlackReply.put(db, Clicker("C0ROOM", SLACK, slack_user.id), "Somebody decided already.")
        SlackReply.put(db, Clicker("C0ROOM", "U0BEN", SlackUser.of(db, "T0TEAM", "U0BEN", "ben").id), f"{NAME} decided already.")
        new = NewChannel(kind="mail", address=EMAIL, person_id=anna.person_id, name="Annas channel")
        channel = Channel.create(db, by, new)
        channel.change(db, by, {"name": "Annas channel, renamed"})
        Notification.test(db, channel).error = "550 no mailbox of hers"
        Channel.create(db, stage.principal, NewChannel(kind="mail", address=EMAIL))
        Flood.begin(db, anna.person_id, channel.created_at)
        Slip("ab" * 32, "cd" * 32, replays=True, once=True, seconds=600).store(db, by, f'{{"email": "{EMAIL}"}}', anna.person_id)
    Ceremony.begin({"kind": "connect", "email": EMAIL})
    invited_again(stage)
    return replace(anna, principal=by)


def invited_again(stage: Stage) -> None:
    """Leave an invitation of the same address that was not used, as those are before somebody has a role."""
    with transaction(stage.workspace_id) as db:
        [used] = db.find(Invitation)
        used.accepted_at = datetime.now(UTC)


def erase(stage: Stage, person_id: str, by: Principal | None = None) -> datetime:
    with transaction(stage.workspace_id) as db:
        return erasing_people.erase(db, person_id, REASON, by=by or stage.principal)


def texts_of_all_tables(database_urls: DatabaseUrls) -> str:
    """Every row of every table as a text, as a superuser sees it."""
    with psycopg.connect(database_urls.admin) as db:
        select = sql.SQL("SELECT coalesce(string_agg(t::text, chr(10)), '') FROM {} t")
        rows = [db.execute(select.format(sql.Identifier(name))).fetchone() for name in Base.metadata.tables]
    return "\n".join(str(row[0]) for row in rows if row)


def left(database_urls: DatabaseUrls) -> list[str]:
    dump = texts_of_all_tables(database_urls)
    return [trace for trace in TRACES if trace in dump]


def test_no_table_keeps_a_name_or_an_address(stage: Stage, database_urls: DatabaseUrls) -> None:
    anna = known(stage)
    assert left(database_urls) == list(TRACES), "the test would find each of them"
    erase(stage, anna.person_id)
    deleting.remove_deleted()
    assert left(database_urls) == []
    with psycopg.connect(database_urls.admin) as db:
        for name in WITHOUT_ROWS:
            count = sql.SQL("SELECT count(*) FROM {} WHERE person_id = %s").format(sql.Identifier(name))
            assert db.execute(count, [anna.person_id]).fetchone() == (0,), name


def test_each_table_that_names_people_loses_the_row_or_keeps_ids_alone() -> None:
    """A new table with people belongs to one of the two, and `known` inserts a row of it."""
    names = {table.name for table in Base.metadata.tables.values() if any("person" in column.name for column in table.columns)}
    assert names == WITHOUT_ROWS | WITH_IDS


def test_the_audit_of_the_person_s_acts_verifies_without_their_texts(stage: Stage, database_urls: DatabaseUrls) -> None:
    anna = known(stage)
    approval = ask(stage, stage.session())
    vote(stage, anna, approval)
    with transaction(stage.workspace_id) as db:
        [act] = db.find(Audit, "WHERE action = 'approval.decided'")
        assert (act.principal, act.address) == (f"user:{anna.person_id}", None)
        assert audit_text.of(db, [(act.chain, act.seq)])[act.chain, act.seq]["client_address"] == NETWORK
    erase(stage, anna.person_id)
    deleting.remove_deleted()
    report = verifying.verify(stage.workspace_id, verifying.walk(stage.workspace_id), [])
    assert [problem for problem in report.problems if problem.kind != "unsigned"] == []
    assert any("erased by api_key:key_test" in note for note in report.notes)
    with transaction(stage.workspace_id) as db:
        assert audit_text.of(db, [(act.chain, act.seq)]) == {}
        [erased] = db.find(Audit, "WHERE action = 'person.erased'")
        assert (erased.principal, erased.subject_id) == ("api_key:key_test", anna.person_id)
        assert audit_text.of(db, [(erased.chain, erased.seq)])[erased.chain, erased.seq]["reason"] == REASON
    assert NETWORK not in texts_of_all_tables(database_urls)


def test_decisions_and_votes_stay_with_the_id_and_without_the_name(stage: Stage) -> None:
    anna = known(stage)
    approval = ask(stage, stage.session())
    vote(stage, anna, approval)
    erase(stage, anna.person_id)
    with transaction(stage.workspace_id) as db:
        row = db.get_one(Approval, approval.id)
        assert (row.status, row.decided_by) == ("allowed", f"user:{anna.person_id}")
        assert Names.of(db, [row.decided_by])[row.decided_by] == ERASED_NAME == "a person who was erased"
    assert votes(stage, approval) == [(anna.person_id, "allow")]


def test_what_waits_for_the_person_is_as_after_a_deactivation(stage: Stage) -> None:
    shortages = []
    for end in (deactivate, erase):
        anna = member(stage)
        approval = ask(stage, stage.session(approval={"approvers": [f"user:{anna.person_id}"]}))
        end(stage, anna.person_id)
        with transaction(stage.workspace_id) as db:
            row = db.get_one(Approval, approval.id)
            assert row.status == "pending"
            shortages.append(requirements(db, row)["shortage"])
    assert shortages[0] == shortages[1]
    assert "Nobody may allow this call" in str(shortages[0])


def deactivate(stage: Stage, person_id: str) -> None:
    with transaction(stage.workspace_id) as db:
        Member.deactivate(db, person_id, by=stage.principal)


def test_delegations_end_and_the_person_comes_back_only_as_somebody_new(stage: Stage) -> None:
    anna, dora = known(stage), member(stage)
    with transaction(stage.workspace_id) as db:
        terms = Terms(anna.person_id, dora.person_id, None, None, datetime.now(UTC) + timedelta(days=1))
        Delegation.give(db, anna.principal, terms)
    erase(stage, anna.person_id)
    with transaction(stage.workspace_id) as db:
        assert Delegation.live(db, [anna.person_id], datetime.now(UTC)) == []
        with pytest.raises(NotFound):
            Member.find(db, anna.person_id)
        assert Identity.find(db, "https://issuer.example", "sub-quince") is None
    with transaction() as db:
        assert everywhere(db, EMAIL) == {}
    assert member(stage, email=EMAIL).person_id != anna.person_id


def test_erasing_again_changes_nothing_and_also_a_deactivated_person_is_erased(stage: Stage, database_urls: DatabaseUrls) -> None:
    anna = known(stage)
    deactivate(stage, anna.person_id)
    at = erase(stage, anna.person_id)
    assert erase(stage, anna.person_id) == at
    deleting.remove_deleted()
    assert erase(stage, anna.person_id) == at
    assert left(database_urls) == []
    with transaction(stage.workspace_id) as db:
        assert len(db.find(Audit, "WHERE action = 'person.erased'")) == 1


def test_nobody_erases_themselves_the_last_admin_or_a_stranger(stage: Stage) -> None:
    admin, other = member(stage, "admin"), member(stage, "admin")
    with pytest.raises(Invalid, match="nobody can erase themselves"):
        erase(stage, admin.person_id, admin.principal)
    erase(stage, other.person_id, admin.principal)
    with pytest.raises(Conflict, match="the last admin"):
        erase(stage, admin.person_id)
    with pytest.raises(NotFound):
        erase(Stage(), admin.person_id)
    with transaction(stage.workspace_id) as db:
        assert db.get_one(Person, admin.person_id).erased_at is None
        assert Member.find(db, admin.person_id).role == "admin"


def test_a_crash_between_leaves_the_rest_to_a_later_sweep_in_batches(
    stage: Stage, database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(audit_text, "ACTS", 1)
    anna = known(stage)
    erase(stage, anna.person_id)
    assert left(database_urls), "no sweep has run"
    assert removals.remove_batch(stage.workspace_id, anna.person_id), "one batch is not enough"
    while removals.remove_batch(stage.workspace_id, anna.person_id):
        pass
    assert left(database_urls) == []
    clock.advance(61)
    deleting.remove_deleted()
    with transaction(stage.workspace_id) as db:
        assert db.find(Removal) == []


def test_a_row_that_a_transaction_inserted_meanwhile_goes_with_the_sweep(stage: Stage, database_urls: DatabaseUrls) -> None:
    anna = known(stage)
    erase(stage, anna.person_id)
    with transaction(stage.workspace_id) as db:
        SignIn.start(db, anna.principal, "link", user_agent=BROWSER)
    assert BROWSER in left(database_urls)
    deleting.remove_deleted()
    assert left(database_urls) == []


def test_texts_of_acts_that_do_not_say_whom_they_are_about_go_too(stage: Stage, database_urls: DatabaseUrls) -> None:
    anna = known(stage)
    with transaction(stage.workspace_id) as db:  # as releases before 0.3 stored them
        [phone] = db.find(AuditText, "WHERE text = 'Annas phone'")
        db.delete(phone)
        db.insert(AuditText(**{**vars(phone), "about": None}))
    erase(stage, anna.person_id)
    deleting.remove_deleted()
    assert left(database_urls) == []


def test_a_workspace_on_legal_hold_keeps_its_people_and_a_session_on_hold_its_texts(
    stage: Stage, database_urls: DatabaseUrls, clock: Clock
) -> None:
    anna = known(stage)
    session = stage.session()
    vote(stage, anna, ask(stage, session))
    with transaction(stage.workspace_id) as db:
        everything = LegalHold.set_on(db, stage.principal, None, "A case")
    with pytest.raises(Conflict, match=everything.id):
        erase(stage, anna.person_id)
    with transaction(stage.workspace_id) as db:
        LegalHold.of_id(db, everything.id).release(db, stage.principal)
        one = LegalHold.set_on(db, stage.principal, session, "A case")
    erase(stage, anna.person_id)
    deleting.remove_deleted()
    clock.advance(61)
    deleting.remove_deleted()
    assert left(database_urls) == [NETWORK], "the text of the session on hold"
    with transaction(stage.workspace_id) as db:
        LegalHold.of_id(db, one.id).release(db, stage.principal)
        assert legal_hold.find(db, session) is None
    deleting.remove_deleted()
    assert left(database_urls) == []
    clock.advance(61)
    deleting.remove_deleted()
    assert due.removals() == []


def test_other_people_keep_what_is_theirs(stage: Stage) -> None:
    anna, dora = known(stage), member(stage, email="dora@example.com")
    before = erasable(stage, dora)
    erase(stage, anna.person_id)
    deleting.remove_deleted()
    assert erasable(stage, dora) == before


def erasable(stage: Stage, who: Somebody) -> tuple[int, int, str]:
    with transaction(stage.workspace_id) as db:
        texts = db.value("SELECT count(*) FROM audit_text WHERE about = %(id)s", id=who.person_id)
        sign_ins = db.value("SELECT count(*) FROM sign_in WHERE person_id = %(id)s", id=who.person_id)
        return texts, sign_ins, db.get_one(Person, who.person_id).email
