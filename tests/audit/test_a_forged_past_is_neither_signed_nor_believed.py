"""A past that somebody rewrote consistently and without signatures is neither signed by the sealer nor intact to the verifier."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from audit.tampering import Intruder, act, named, sealed, verified
from own_database import Clock
from rows.stage import Stage

from models.audit import adoption, alarm, seal_key, seal_sweep, seals, signed_heads, text
from models.audit.acts import Audit
from models.audit.principal import Principal
from models.audit.seal_key import PublicKey
from models.audit.text import Text
from models.database.transactions import transaction
from models.settings import settings

pytestmark = pytest.mark.usefixtures("key")

FORGER = "person:nobody"
BEFORE_THE_KEY = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def sweep(stage: Stage) -> seal_sweep.SealSweep:
    """A sealer that has signed two sessions, several times."""
    sweep = seal_sweep.SealSweep()
    for _ in range(2):
        act(stage)
        sweep.run()
    return sweep


def signatures(stage: Stage) -> list[int]:
    """The numbers of the signed acts."""
    with transaction(stage.workspace_id) as db:
        return [seq for (seq,) in db.rows("SELECT seq FROM seal ORDER BY seq")]


def alarm_of(stage: Stage) -> str | None:
    return alarm.of(stage.workspace_id)


def roll_back(stage: Stage, intruder: Intruder) -> int:
    """Restore the workspace's chain to its state after its first seal. Returns the number of that seal's act."""
    first = signatures(stage)[0]
    for table in ("audit WHERE chain", "audit_text WHERE chain", "seal WHERE workspace_id"):
        intruder.do(f"DELETE FROM {table} = %s AND seq > {first}", stage.workspace_id)
    intruder.rechain(stage.workspace_id)
    return first


def adopt(stage: Stage) -> None:
    """Adopt the audit as it is, as `assent audit adopt` does."""
    key = seal_key.own()
    assert key
    with signed_heads.open_file(signed_heads.path(), make_anew=True) as heads:
        adoption.adopt(Principal("person", "operator", stage.workspace_id), Text("Restored a backup"), key, heads)


def test_a_forged_past_is_not_signed_and_raises_an_alarm(
    stage: Stage, sweep: seal_sweep.SealSweep, intruder: Intruder, caplog: pytest.LogCaptureFixture
) -> None:
    intruder.forge_everything(FORGER)
    act(stage)
    sweep.run()
    assert signatures(stage) == []
    [record] = caplog.records
    assert record.levelname == "CRITICAL"
    assert stage.workspace_id in record.message
    assert "does not go through act" in (alarm_of(stage) or "")
    sweep.run()
    assert len(caplog.records) == 1, "the same alarm is logged once an hour"
    seal_sweep.SealSweep().run()
    assert signatures(stage) == [], "another process of the sealer knows the heads"


def test_a_forged_past_is_not_intact_even_after_it_was_signed(
    stage: Stage, sweep: seal_sweep.SealSweep, intruder: Intruder, heads_file: Path
) -> None:
    """As by a sealer whose operator adopted the audit."""
    last = intruder.length(stage.workspace_id)
    intruder.forge_everything(FORGER)
    assert [kind for kind, *_ in named(verified(stage))] == ["unsigned"], "no signature at all"
    adopt(stage)
    sweep.run()
    assert len(signatures(stage)) == 2, "the adoption, and a seal of all chains, since no other seal is signed"
    [problem] = verified(stage).problems
    assert (problem.kind, problem.last) == ("unsigned", last)
    assert "--signed-since" in problem.message


def test_a_forged_past_without_its_seals_is_not_signed(stage: Stage, sweep: seal_sweep.SealSweep, intruder: Intruder) -> None:
    intruder.do("DELETE FROM audit WHERE chain = %s AND action = 'audit.sealed'", stage.workspace_id)
    for new, row in enumerate(intruder.rows(stage.workspace_id), 1):
        intruder.do("UPDATE audit SET seq = %s WHERE chain = %s AND seq = %s", new, stage.workspace_id, row["seq"])
    intruder.do("DELETE FROM seal")
    intruder.forge_everything(FORGER)
    seal_sweep.SealSweep().run()
    assert signatures(stage) == []
    assert alarm_of(stage)


@pytest.mark.parametrize("grow", [True, False])
def test_a_chain_that_was_rolled_back_is_not_signed(
    stage: Stage, sweep: seal_sweep.SealSweep, intruder: Intruder, grow: bool
) -> None:
    """Even if no act follows: the sealer compares all heads at its start and every hour."""
    first = roll_back(stage, intruder)
    if grow:
        act(stage)
    (sweep if grow else seal_sweep.SealSweep()).run()
    assert signatures(stage) == [first]
    assert alarm_of(stage)


def test_a_deleted_workspace_raises_an_alarm(
    stage: Stage, sweep: seal_sweep.SealSweep, intruder: Intruder, caplog: pytest.LogCaptureFixture
) -> None:
    intruder.do("DELETE FROM workspace")
    seal_sweep.SealSweep().run()
    assert "row is gone" in caplog.text


def test_a_restored_backup_is_signed_again_once_an_operator_adopts_it(
    stage: Stage, sweep: seal_sweep.SealSweep, intruder: Intruder, key: PublicKey
) -> None:
    """A signed act names the operator, the reason and both heads."""
    kept = signed_heads_of(stage)
    first = roll_back(stage, intruder)
    sweep = seal_sweep.SealSweep()
    sweep.run()
    assert alarm_of(stage)
    adopt(stage)
    sweep.run()
    sweep.run()
    assert alarm_of(stage) is None
    report = verified(stage)
    assert report.signed
    assert report.unsealed == 0
    with transaction(stage.workspace_id) as db:
        [adopted] = db.find(Audit, "WHERE action = %(action)s", action=seals.ADOPTED)
        texts = text.of(db, [(adopted.chain, adopted.seq)])
    assert adopted.seq in signatures(stage)
    assert adopted.principal == "person:operator"
    assert texts == {(adopted.chain, adopted.seq): {"reason": "Restored a backup"}}
    assert adopted.details["kept"] == list(kept)
    assert adopted.details["adopted"][0] == first
    assert any(f"act {adopted.seq} by person:operator" in note for note in report.notes)


def signed_heads_of(stage: Stage) -> signed_heads.Head:
    """The head of the workspace's chain in the file."""
    with signed_heads.open_file(signed_heads.path()) as heads:
        head = heads.of(stage.workspace_id)
    assert head
    return head


@pytest.mark.parametrize("damage", ["remove", "empty", "cut", "other"])
def test_after_a_lost_or_damaged_file_of_heads_nothing_is_signed(
    stage: Stage, sweep: seal_sweep.SealSweep, heads_file: Path, damage: str, clock: Clock
) -> None:
    before = signatures(stage)
    text = heads_file.read_text()
    heads_file.unlink()
    if damage != "remove":
        heads_file.write_text({"empty": "", "cut": text[:-3], "other": json.dumps({"assent_signed_heads": 2})}[damage])
    act(stage)
    clock.advance(seals.LATE_SECONDS)
    sweep.run()
    assert signatures(stage) == before
    assert "assent audit adopt" in (alarm_of(stage) or "")
    assert not heads_file.exists() or heads_file.read_text() != text, "no new file was made"
    heads_file.write_text(text)
    sweep.run()
    assert len(signatures(stage)) == len(before) + 1
    assert alarm_of(stage) is None
    assert verified(stage).intact


def test_after_a_head_was_lost_from_the_file_nothing_is_signed(
    stage: Stage, sweep: seal_sweep.SealSweep, heads_file: Path, clock: Clock
) -> None:
    """The workspace is older than the file, so it is not a new one."""
    before = signatures(stage)
    content = json.loads(heads_file.read_text())
    heads_file.write_text(json.dumps(content | {"heads": {}}))
    act(stage)
    clock.advance(2 * seals.LATE_SECONDS)
    for process in (sweep, seal_sweep.SealSweep()):
        process.run()
    assert signatures(stage) == before
    assert "has no head of it" in (alarm_of(stage) or "")


def test_the_file_of_heads_is_beside_the_key_file(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heads_file: Path
) -> None:
    (tmp_path / "audit.key").write_text(seal_key.make())
    for name in ("ASSENT_AUDIT_KEY", "ASSENT_AUDIT_HEADS_FILE"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("ASSENT_AUDIT_KEY_FILE", str(tmp_path / "audit.key"))
    settings.cache_clear()
    signed_heads.make(tmp_path / "audit.key.heads")
    act(stage)
    seal_sweep.SealSweep().run()
    assert signatures(stage)
    assert stage.workspace_id in (tmp_path / "audit.key.heads").read_text()
    assert (tmp_path / "audit.key.heads").stat().st_mode & 0o777 == 0o600


def test_if_the_file_of_heads_cannot_be_written_the_old_one_stays_valid(
    stage: Stage, sweep: seal_sweep.SealSweep, heads_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is then older than the database, and the next sweep goes on from its head."""
    before = heads_file.read_text()
    act(stage)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", _full)
        with pytest.raises(OSError, match="No space"):
            sweep.run()
    assert heads_file.read_text() == before
    act(stage)
    sweep.run()
    assert heads_file.read_text() != before
    assert alarm_of(stage) is None
    assert verified(stage).intact


def _full(_descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_only_one_process_signs_at_a_time(stage: Stage, heads_file: Path) -> None:
    act(stage)
    with signed_heads.open_file(heads_file):
        seal_sweep.SealSweep().run()
        assert signatures(stage) == []
    seal_sweep.SealSweep().run()
    assert signatures(stage)


def test_an_unsigned_audit_is_a_problem_if_a_key_is_known(stage: Stage, key: PublicKey) -> None:
    act(stage)
    assert [kind for kind, *_ in named(verified(stage))] == ["unsigned"]
    sealed(stage)
    assert verified(stage).intact


def test_seals_from_before_the_key_are_excused_by_signed_since(
    stage: Stage, key: PublicKey, monkeypatch: pytest.MonkeyPatch, intruder: Intruder
) -> None:
    """The report says so. A backdated seal does not excuse a later act."""
    with monkeypatch.context() as keyless:
        keyless.delenv("ASSENT_AUDIT_KEY")
        settings.cache_clear()
        session_id = act(stage)
        sealed(stage)
        act(stage)
        sealed(stage)
    settings.cache_clear()
    with transaction(stage.workspace_id) as db:
        since = db.value("SELECT assent_now()")
    act(stage)
    sealed(stage)
    last = intruder.length(stage.workspace_id)
    assert [(kind, first < seq < last) for kind, _, first, seq in named(verified(stage))] == [("unsigned", True)]
    report = verified(stage, signed_since=since)
    assert report.intact, report.problems
    assert any(f"Signed since {since.astimezone(UTC).isoformat()}" in note and "2 older seals" in note for note in report.notes)
    assert not verified(stage, signed_since=BEFORE_THE_KEY).intact
    earlier = since - timedelta(days=1)
    intruder.do("UPDATE audit SET at = at - interval '2 days' WHERE chain = %s", stage.workspace_id)
    intruder.rechain(stage.workspace_id)
    assert ("unsigned", session_id) in [(kind, chain) for kind, chain, *_ in named(verified(stage, signed_since=earlier))]
