"""The sweeps that seal the audit and delete rows may die: each act is sealed once, and no row is lost that somebody needs."""

from collections import Counter
from pathlib import Path

import pytest
from audit.cutting import anchor, archived, export_to, grown_old
from audit.tampering import act, sealed, verified
from crashes.boundaries import of
from crashes.journey import Journey
from crashes.processes import wait_for
from rows.archived import MONTH, conversation, parts, read_back, stored
from rows.stage import Stage

from models.audit import sealing, signed_heads
from models.audit import seals as seal
from models.audit.acts import BEGINNING, Audit
from models.audit.cutting import sweep as cutting
from models.audit.seal_sweep import SealSweep
from models.database import transactions
from models.database.transactions import transaction
from models.flow.begin.sessions import delete, gone
from models.operate import due
from models.outbox import removal
from models.session.archive.part import erase_parts
from models.session.event.row import Event
from models.session.tool_call.row import ToolCall
from models.settings import settings
from models.workspace.idempotency import KEY_SECONDS, Slip
from models.workspace.row import Workspace
from workers.sweeps import archiving, deleting
from workers.sweeps import sealing as sealing_sweeps


@pytest.mark.parametrize("boundary", of("seal"))
def test_a_sweep_that_seals_may_die_too(
    journey: Journey, audit_key: str, audit_heads: Path, boundary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next sweep, which remembers earlier chains, seals the rest, and nothing twice."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)
    monkeypatch.setenv("ASSENT_AUDIT_KEY", audit_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(audit_heads))
    audit_heads.unlink()  # heads of other tests' workspaces
    signed_heads.make(audit_heads)
    settings.cache_clear()
    stages, living = [journey.stage, Stage()], SealSweep()
    living.run()
    sessions = [act(stage) for stage in stages for _ in range(2)]
    journey.kill_at(boundary, "sweep.seal_audit")
    assert sorted(len(seals(stage)) for stage in stages) == ([1, 1] if boundary == "seal.before_commit" else [1, 2])
    wait_for("all is sealed", lambda: seals_all(living))
    SealSweep().run()
    rows = [row for stage in stages for row in seals(stage)]
    assert Counter(chain for row in rows for chain in row.details["heads"]) == Counter(sessions)
    assert [len(seals(stage)) for stage in stages] == [2, 2]
    for stage in stages:
        report = verified(stage)
        assert (report.intact, report.unsealed) == (True, 0), report.problems
        with transaction(stage.workspace_id) as db:
            assert sorted(seq for (seq,) in db.rows("SELECT seq FROM seal")) == [row.seq for row in seals(stage)], "each is signed"


@pytest.mark.parametrize("boundary", of("cut"))
def test_a_sweep_that_cuts_the_audit_may_die_too(
    journey: Journey, audit_key: str, audit_heads: Path, boundary: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next sweep cuts the rest. The acts behind one anchor go all at once."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)
    monkeypatch.setenv("ASSENT_AUDIT_KEY", audit_key)
    monkeypatch.setenv("ASSENT_AUDIT_HEADS_FILE", str(audit_heads))
    audit_heads.unlink()  # heads of other tests' workspaces
    signed_heads.make(audit_heads)
    settings.cache_clear()
    stage = journey.stage
    session_id = archived(stage)
    grown_old(stage, journey.clock)
    anchor(stage, export_to(stage, tmp_path / "export.jsonl"))
    sealed(stage)
    journey.kill_at(boundary, "sweep.cut_audit")
    with transaction(stage.workspace_id) as db:
        left = db.value("SELECT count(*) FROM audit WHERE chain = %(id)s", id=session_id)
    assert bool(left) == (boundary == "cut.before_commit")
    assert verified(stage).intact
    wait_for("all acts are cut", lambda: not sealing_sweeps.cut_audit() and cutting.due() == [])
    report = verified(stage)
    assert report.intact, report.problems


@pytest.mark.parametrize("boundary", of("delete_old"))
def test_a_sweep_that_deletes_responses_may_die_too(journey: Journey, boundary: str) -> None:
    """In the end the old response is deleted, and the young one is kept."""
    who = journey.stage.principal
    old, young = (Slip.of(who, "POST", "/v1/agents", b"{}", key=key, retry=0) for key in ("old", "young"))
    store(journey.stage, old)
    journey.clock.advance(KEY_SECONDS - 60)
    store(journey.stage, young)
    journey.clock.advance(61)
    journey.kill_at(boundary, "sweep.delete_old")
    assert kept(journey.stage) == ({old.sha256, young.sha256} if boundary == "delete_old.before_commit" else {young.sha256})
    for _ in range(2):
        deleting.delete_old()
        assert kept(journey.stage) == {young.sha256}
    with transaction(who.workspace_id) as db:
        response = young.find(db)
        assert response
        assert response.text == "said"


@pytest.mark.parametrize("boundary", of("delete_archived"))
def test_a_sweep_that_deletes_an_old_archived_session_may_die_too(
    journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next sweep deletes it with its content, once."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)  # no worker takes what the stage does
    stage = journey.stage
    session = conversation(stage)
    journey.clock.advance(MONTH)
    archiving.archive()
    [part] = parts(stage, session)
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, stage.principal, {"retention": {"archived_days": 100}})
    journey.clock.advance(100 * 86_400)
    journey.kill_at(boundary, "sweep.delete_archived")
    assert (gone([session]) == set()) == (boundary == "delete_archived.before_commit")
    wait_for("it is deleted", lambda: not deleting.delete_archived() and gone([session]))
    wait_for("its rows are removed", lambda: not deleting.remove_deleted() and due.removals() == [])
    wait_for("its content is removed", lambda: not archiving.remove_parts() and parts(stage, session) == [])
    assert stored(stage, part) is None
    with transaction(stage.workspace_id) as db:
        assert len(db.find(Audit, "WHERE action = 'session.deleted' AND chain = %(chain)s", chain=stage.workspace_id)) == 1


@pytest.mark.parametrize("boundary", of("remove_batch"))
def test_a_sweep_that_removes_a_deleted_session_may_die_too(
    journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next sweep removes the rest."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)  # else a hint has another process take the turn, or the removal
    stage = journey.stage
    session = stage.session()
    stage.propose(session)
    stage.send(session, {"type": "user.interrupt"})
    stage.locked(session, delete)
    journey.kill_at(boundary, "sweep.remove_deleted")
    with transaction(stage.workspace_id) as db:
        removal.sees(db, session)
        left = db.find(ToolCall, "WHERE session_id = %(id)s", id=session)
        assert bool(left) == (boundary == "remove_batch.before_commit")
    wait_for("all rows are removed", lambda: not deleting.remove_deleted() and due.removals() == [])
    with transaction(stage.workspace_id) as db:
        removal.sees(db, session)
        assert db.find(Event, "WHERE session_id = %(id)s", id=session) == []


@pytest.mark.parametrize("boundary", [each for verb in ("begin_part", "store_content", "take_place") for each in of(verb)])
def test_a_sweep_that_archives_may_die_too(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything can be read before and after, and in the end it is in one part."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)  # no worker takes what the stage does
    stage = journey.stage
    session = conversation(stage)
    before = read_back(stage, session)
    journey.clock.advance(MONTH)
    journey.kill_at(boundary, "sweep.archive")
    assert read_back(stage, session) == before
    assert bool(stage.events(session)) == (boundary not in {"take_place.after_commit", "take_place.after_publish"})
    wait_for("all is archived", lambda: not archiving.archive() and not stage.events(session))
    journey.clock.advance(3601)
    archiving.remove_parts()
    assert [part.status for part in parts(stage, session)] == ["kept"]
    assert read_back(stage, session) == before


@pytest.mark.parametrize("boundary", of("remove_part"))
def test_a_sweep_that_removes_an_erased_part_may_die_too(journey: Journey, boundary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next sweep removes it."""
    monkeypatch.setattr(transactions, "_send", lambda _: None)  # no worker takes what the stage does
    stage = journey.stage
    session = conversation(stage)
    journey.clock.advance(MONTH)
    archiving.archive()
    [part] = parts(stage, session)
    with transaction(stage.workspace_id) as db:
        erase_parts(db, session)
    journey.kill_at(boundary, "sweep.remove_parts")
    wait_for("it is removed", lambda: not archiving.remove_parts() and parts(stage, session) == [])
    assert stored(stage, part) is None


def seals_all(sweep: SealSweep) -> bool:
    """Sweep, and return True if all is sealed. A dead sweep's lock lasts a moment longer, and its workspace is left until then."""
    sweep.run()
    return not sealing.grown(BEGINNING, sweep.coverage).chains


def seals(stage: Stage) -> list[Audit]:
    """The workspace's seals."""
    with transaction(stage.workspace_id) as db:
        return db.find(Audit, "WHERE action = %(action)s ORDER BY seq", action=seal.SEALED)


def store(stage: Stage, slip: Slip) -> None:
    """Store the response to a request."""
    with transaction(stage.workspace_id) as db:
        slip.store(db, stage.principal, "said")


def kept(stage: Stage) -> set[str]:
    """The slips of the stored responses."""
    with transaction(stage.workspace_id) as db:
        return {slip for (slip,) in db.rows("SELECT slip FROM stored_response")}
