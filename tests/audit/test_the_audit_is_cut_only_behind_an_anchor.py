"""Acts of the audit are cut only behind a signed and sealed anchor, and only old, sealed, exported ones of archived sessions."""

from pathlib import Path

import pytest
from audit.cutting import DAY, REASON, anchor, archived, cut, delete, export_to, grown_old, keeps
from audit.tampering import Intruder, act, named, sealed, verified
from own_database import Clock
from rows.archived import MONTH, archive, conversation
from rows.stage import Stage, say

from models.audit import adoption, anchors, legal_hold, seal_key, signed_heads
from models.audit.cutting import anchoring, export, sweep
from models.audit.cutting.export import NotIntact
from models.audit.legal_hold import LegalHold
from models.audit.seal_sweep import SealSweep
from models.database.transactions import transaction
from models.errors import Conflict
from models.flow.begin import sessions
from models.operate.doctor import work

HOUR = 3600

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where exports go."""
    return tmp_path / "export.jsonl"


@pytest.fixture
def session_id(stage: Stage, clock: Clock) -> str:
    """An archived session whose acts are old and sealed, like all others of the workspace."""
    session_id = archived(stage)
    grown_old(stage, clock)
    return session_id


def test_old_acts_are_exported_anchored_sealed_and_deleted(stage: Stage, session_id: str, intruder: Intruder, file: Path) -> None:
    before = intruder.length(session_id) + intruder.length(stage.workspace_id)
    terms = cut(stage, file)
    assert intruder.rows(session_id) == []
    assert {row["action"] for row in intruder.rows(stage.workspace_id)} == {"audit.anchored", "audit.sealed"}
    assert terms.acts == before - 1, "no seal in the export covers its last seal"
    assert intruder.db.execute("SELECT count(*) FROM audit_text WHERE chain = %s", [session_id]).fetchone() == (0,)
    report = verified(stage)
    assert report.intact, named(report)
    assert report.anchor
    assert (report.anchor.principal, report.anchor.export_sha256) == (str(stage.principal), terms.export_sha256)
    assert report.cut_acts == terms.acts
    assert any("Verified from the anchor of act" in note for note in report.notes)


def test_an_anchor_names_chain_number_hash_count_principal_reason_and_export(
    stage: Stage, session_id: str, intruder: Intruder, file: Path
) -> None:
    last = intruder.rows(session_id)[-1]
    terms = anchor(stage, export_to(stage, file))
    with transaction(stage.workspace_id) as db:
        [first, own] = anchors.read(db, stage.workspace_id, [seq for (seq,) in db.rows("SELECT seq FROM audit_anchor")])
        assert db.rows("SELECT DISTINCT text FROM audit_text WHERE chain = %(c)s AND name = 'reason'", c=stage.workspace_id) == [
            (REASON,)
        ]
    assert first.cuts == [anchors.Cut(session_id, last["seq"], last["hash"], last["seq"])]
    assert [each.chain for each in own.cuts] == [stage.workspace_id]
    assert first.row["principal"] == str(stage.principal)
    assert first.row["details"]["export_sha256"] == terms.export_sha256
    assert first.is_good(seal_key.trusted_keys())


def test_the_file_of_heads_keeps_the_anchor_and_the_sealer_goes_on(
    stage: Stage, session_id: str, intruder: Intruder, file: Path
) -> None:
    cut(stage, file)
    kept = signed_heads.open_file(signed_heads.path())
    newest = [row for row in intruder.rows(stage.workspace_id) if row["action"] == "audit.anchored"][-1]
    with kept as heads:
        assert heads.anchor_of(stage.workspace_id) == (newest["seq"], newest["hash"])
    act(stage)
    SealSweep().run()  # a new process, which compares all chains with their seals
    assert intruder.db.execute("SELECT seal_alarm FROM workspace WHERE id = %s", [stage.workspace_id]).fetchone() == (None,)
    report = verified(stage)
    assert report.intact, named(report)
    assert report.unsealed == 0


def test_the_sealer_raises_the_alarm_if_the_anchor_that_it_kept_is_not_there(
    stage: Stage, session_id: str, intruder: Intruder, file: Path
) -> None:
    cut(stage, file)
    with signed_heads.open_file(signed_heads.path()) as heads:
        seq, _ = heads.anchor_of(stage.workspace_id) or (0, "")
        heads.keep_anchor(stage.workspace_id, (seq + 1, "00" * 32))
    SealSweep().run()
    [alarm] = intruder.db.execute("SELECT seal_alarm FROM workspace WHERE id = %s", [stage.workspace_id]).fetchone() or ("",)
    assert "has not the anchor that was kept" in alarm
    with signed_heads.open_file(signed_heads.path()) as heads:
        key = seal_key.own()
        assert key
        adoption.adopt(stage.principal, adoption.reason_text("A backup was restored."), key, heads)
    SealSweep().run()
    assert intruder.db.execute("SELECT seal_alarm FROM workspace WHERE id = %s", [stage.workspace_id]).fetchone() == (None,)
    assert verified(stage).intact


def test_a_sealer_whose_file_is_older_than_the_cut_goes_on(
    stage: Stage, session_id: str, intruder: Intruder, file: Path, heads_file: Path
) -> None:
    older = heads_file.read_bytes()
    cut(stage, file)
    heads_file.write_bytes(older)
    act(stage)
    SealSweep().run()
    assert intruder.db.execute("SELECT seal_alarm FROM workspace WHERE id = %s", [stage.workspace_id]).fetchone() == (None,)
    report = verified(stage)
    assert (report.intact, report.unsealed) == (True, 0), named(report)
    with signed_heads.open_file(heads_file) as heads:
        assert heads.anchor_of(stage.workspace_id), "it keeps the anchor that it read"


def test_nothing_goes_before_a_seal_covers_the_anchor_and_a_crash_in_between_is_resumed(
    stage: Stage, session_id: str, intruder: Intruder, file: Path
) -> None:
    terms = anchor(stage, export_to(stage, file))
    assert delete(stage) == 0
    assert verified(stage).intact, "the acts are all there"
    sealed(stage)
    assert verified(stage).intact
    first, *_ = sweep.due()
    some = sweep.cut(first)
    assert some
    assert sweep.cut(first) is None, "it is done"
    report = verified(stage)
    assert report.intact, named(report)
    assert delete(stage) == terms.acts - some
    assert verified(stage).intact


def test_what_an_interrupted_command_left_is_anchored_by_the_next_one(
    stage: Stage, session_id: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(anchoring.workspace_chain, "anchor", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            anchor(stage, export_to(stage, file))
    some = anchor(stage, file).acts
    assert some, "the workspace's own chain"
    assert anchor(stage, file).acts == 0
    sealed(stage)
    assert delete(stage) > some
    assert verified(stage).intact


def test_only_the_function_of_the_sweep_deletes_and_only_what_a_sealed_anchor_names(
    stage: Stage, session_id: str, intruder: Intruder, file: Path
) -> None:
    with transaction(role="system") as db:
        assert db.value("SELECT assent_cut_audit(%(workspace)s, 1)", workspace=stage.workspace_id) is None
    anchor(stage, export_to(stage, file))
    due = sweep.due()[0]
    with transaction(role="system") as db:
        assert db.value("SELECT assent_cut_audit(%(workspace)s, %(seq)s)", workspace=due.workspace_id, seq=due.seq) is None
    assert intruder.rows(session_id)


def test_an_anchor_that_no_known_key_signed_deletes_nothing(stage: Stage, session_id: str, intruder: Intruder, file: Path) -> None:
    anchor(stage, export_to(stage, file))
    sealed(stage)
    intruder.do("UPDATE seal SET signature = 'AAAA' WHERE workspace_id = %s", stage.workspace_id)
    with pytest.raises(sweep.BadAnchor):
        delete(stage)
    assert intruder.rows(session_id)


def test_a_session_that_is_not_archived_or_on_hold_or_young_keeps_its_acts(
    stage: Stage, clock: Clock, intruder: Intruder, file: Path
) -> None:
    open_id, held_id, gone_id = act(stage), archived(stage), act(stage)
    stage.locked(gone_id, sessions.delete)
    grown_old(stage, clock)
    young_id = archived(stage)
    sealed(stage)
    with transaction(stage.workspace_id) as db:
        LegalHold.set_on(db, stage.principal, held_id, "A case.")
    cut(stage, file)
    assert [bool(intruder.rows(chain)) for chain in (open_id, held_id, gone_id, young_id)] == [True, True, False, True]
    report = verified(stage)
    assert report.intact, named(report)
    assert report.unsealed == 0, "the anchor carries the seals of what stays"


def test_an_anchor_carries_the_seals_of_chains_that_stay(stage: Stage, clock: Clock, file: Path) -> None:
    """A sealer that runs seals no chain twice: nothing else would cover the chain any more."""
    keeps(stage, 1)
    living = SealSweep()
    open_id = act(stage)
    living.run()
    archived(stage)
    living.run()
    clock.advance(2 * DAY)
    living.run()
    anchor(stage, export_to(stage, file))
    living.run()
    assert delete(stage)
    report = verified(stage)
    assert (report.intact, report.unsealed) == (True, 0), named(report)
    with transaction(stage.workspace_id) as db:
        acts = anchors.read(db, stage.workspace_id, [seq for (seq,) in db.rows("SELECT seq FROM audit_anchor")])
    assert [list(each.row["details"]["heads"]) for each in acts] == [[], [open_id]]


def test_a_forged_seal_over_an_anchor_deletes_nothing(stage: Stage, session_id: str, intruder: Intruder, file: Path) -> None:
    anchor(stage, export_to(stage, file))
    sealed(stage)
    last = intruder.length(stage.workspace_id)
    intruder.do("UPDATE seal SET signature = 'AAAA' WHERE workspace_id = %s AND seq = %s", stage.workspace_id, last)
    assert delete(stage) == 0
    assert intruder.rows(session_id)


def test_a_session_whose_events_are_all_in_the_archive_is_archived(
    stage: Stage, clock: Clock, intruder: Intruder, file: Path
) -> None:
    whole_id, used_again_id = conversation(stage), conversation(stage)
    clock.advance(MONTH)
    assert archive(stage, whole_id)
    assert archive(stage, used_again_id)
    stage.message(used_again_id)
    stage.reply(used_again_id, say("Yes?"))
    grown_old(stage, clock)
    cut(stage, file)
    assert not intruder.rows(whole_id)
    assert intruder.rows(used_again_id)
    stage.message(whole_id)
    stage.reply(whole_id, say("Go on."))
    sealed(stage)
    report = verified(stage)
    assert report.intact, named(report)
    assert intruder.rows(whole_id), "the chain goes on behind its anchor"


def test_nothing_is_cut_while_the_workspace_is_on_hold_also_behind_an_anchor(
    stage: Stage, session_id: str, intruder: Intruder, file: Path
) -> None:
    export_to(stage, file)
    with transaction(stage.workspace_id) as db:
        hold = LegalHold.set_on(db, stage.principal, None, "A case.")
    with pytest.raises(Conflict, match=hold.id):
        anchor(stage, file)
    with transaction(stage.workspace_id) as db:
        LegalHold.of_id(db, hold.id).release(db, stage.principal)
    terms = anchor(stage, file)
    sealed(stage)
    with transaction(stage.workspace_id) as db:
        hold = LegalHold.set_on(db, stage.principal, session_id, "Another case.")
    assert delete(stage) < terms.acts
    assert intruder.rows(session_id)
    with transaction(stage.workspace_id) as db:
        LegalHold.of_id(db, hold.id).release(db, stage.principal)
        assert legal_hold.find(db, session_id) is None
    assert delete(stage)
    assert verified(stage).intact


def test_a_workspace_keeps_its_audit_for_ever_unless_it_says_otherwise(stage: Stage, session_id: str, file: Path) -> None:
    keeps(stage, None)
    with pytest.raises(Conflict, match="for ever"):
        anchor(stage, export_to(stage, file))
    keeps(stage, 30)
    assert anchor(stage, file).acts == 0


def test_acts_that_are_not_sealed_or_not_in_the_export_stay(stage: Stage, clock: Clock, intruder: Intruder, file: Path) -> None:
    first = archived(stage)
    sealed(stage)
    export_to(stage, file)
    second = archived(stage)
    grown_old(stage, clock)
    anchor(stage, file)
    sealed(stage)
    delete(stage)
    assert intruder.rows(first) == []
    assert intruder.rows(second)
    third = archived(stage)
    clock.advance(2 * DAY)
    anchor(stage, export_to(stage, file))
    sealed(stage)
    delete(stage)
    assert intruder.rows(third), "its acts were not sealed when they were exported"
    assert intruder.rows(second) == []


def test_a_changed_export_or_a_database_that_differs_from_it_is_refused(
    stage: Stage, session_id: str, intruder: Intruder, file: Path
) -> None:
    content = export_to(stage, file).read_text("utf-8")
    file.write_text(content.replace("approval.decided", "approval.expired"), "utf-8")
    with pytest.raises(NotIntact):
        anchor(stage, file)
    file.write_text(content, "utf-8")
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 2", session_id)
    intruder.rechain(session_id)
    with pytest.raises(Conflict, match="not the one in the export"):
        anchor(stage, file)
    other = Stage()
    keeps(other, 1)
    with pytest.raises(Conflict, match="of workspace"):
        anchor(other, file)


def test_a_chain_that_the_sealer_refuses_is_not_anchored(stage: Stage, session_id: str, intruder: Intruder, file: Path) -> None:
    export_to(stage, file)
    with signed_heads.open_file(signed_heads.path()) as heads:
        seq, _ = heads.of(stage.workspace_id) or (0, "")
        heads.keep(stage.workspace_id, (seq, "00" * 32))
    with pytest.raises(Conflict, match="does not sign"):
        anchor(stage, file)


def test_large_audits_are_cut_by_several_anchors(
    stage: Stage, clock: Clock, intruder: Intruder, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ACTS", 4)
    monkeypatch.setattr("models.audit.cutting.workspace_chain.ACTS", 4)
    chains = [archived(stage) for _ in range(3)]
    grown_old(stage, clock)
    assert cut(stage, file).anchors > 6
    assert not any(intruder.rows(chain) for chain in chains)
    report = verified(stage)
    assert report.intact, named(report)


def test_the_audit_is_cut_again_and_again_and_a_later_export_verifies_by_itself(
    stage: Stage, session_id: str, clock: Clock, intruder: Intruder, file: Path, tmp_path: Path
) -> None:
    kept_open = act(stage)
    sealed(stage)
    for number in range(3):
        cut(stage, file.with_suffix(f".{number}"))
        archived(stage)
        sealed(stage)
        clock.advance(2 * DAY)
        sealed(stage)
    report = verified(stage)
    assert report.intact, named(report)
    assert intruder.rows(kept_open)
    assert anchoring.read(stage.workspace_id, export_to(stage, file)).report.intact


def test_erased_texts_of_acts_that_stay_are_explained_by_the_anchor(stage: Stage, clock: Clock, file: Path) -> None:
    from models.audit import erasing

    session_id = stage.session(bash="always_ask")
    asked = stage.propose(session_id)
    stage.confirm(session_id, asked.id, "deny", deny_message="Anna says no.")
    with transaction(stage.workspace_id) as db:
        assert erasing.erase(db, stage.principal, chain=session_id).texts
    grown_old(stage, clock)
    cut(stage, file)
    report = verified(stage)
    assert report.intact, named(report)
    assert any(f"erased by {stage.principal}" in note for note in report.notes)


def test_the_doctor_names_an_anchor_that_stays_pending_with_the_reason(
    stage: Stage, session_id: str, file: Path, clock: Clock
) -> None:
    anchor(stage, export_to(stage, file))

    def pending() -> dict[str, str]:
        return {finding.check: finding.subjects[0] for finding in work.findings() if finding.check.startswith("anchors")}

    assert pending() == {}, "the sweep has an hour"
    clock.advance(HOUR)
    first = pending()["anchors"]
    assert first.startswith(f"{stage.workspace_id}/")
    with transaction(stage.workspace_id) as db:
        hold = LegalHold.set_on(db, stage.principal, session_id, "A lawsuit.")
    assert pending() == {"anchors_on_hold": first}
    with transaction(stage.workspace_id) as db:
        LegalHold.of_id(db, hold.id).release(db, stage.principal)
    sealed(stage)
    assert delete(stage)
    assert pending() == {}
