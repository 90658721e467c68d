"""Any number of processes may seal: with files of heads of their own, with the same file, or without a key. None spoils the audit,
none raises a false alarm, and if nobody can seal, the alarm names the reason."""

import json
from collections import Counter
from pathlib import Path

import pytest
import redis
from audit.sealers import Sealer
from audit.tampering import act, verified
from crashes.hints import use_redis
from crashes.processes import wait_for
from own_database import Clock
from rows.stage import Stage

from models.audit import alarm, seal_key, seals, signed_heads
from models.audit.acts import Audit
from models.audit.seal_key import PublicKey
from models.audit.seal_sweep import SealSweep
from models.database.transactions import transaction
from workers.sweeps import deadlines, sealing


@pytest.fixture
def first(private_key: str, key: PublicKey, heads_file: Path, monkeypatch: pytest.MonkeyPatch) -> Sealer:
    """A sealer in production with a key and a file of heads."""
    return Sealer(monkeypatch, private_key, heads_file)


@pytest.fixture
def second(first: Sealer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sealer:
    """Another sealer with the same key, and with an empty file of heads of its own."""
    heads = tmp_path / "second.heads"
    signed_heads.make(heads)
    return Sealer(monkeypatch, first.key, heads)


def copy_heads(sealer: Sealer, to: Sealer) -> None:
    """Copy the file of heads, as an operator does for a new replica."""
    assert sealer.heads
    assert to.heads
    to.heads.write_bytes(sealer.heads.read_bytes())


def sealed_chains(stage: Stage) -> list[str]:
    """The chains that seals name, once per seal."""
    with transaction(stage.workspace_id) as db:
        rows = db.find(Audit, "WHERE action = %(action)s ORDER BY seq", action=seals.SEALED)
    return [chain for row in rows for chain in row.details["heads"]]


def alarm_of(stage: Stage) -> str | None:
    return alarm.of(stage.workspace_id)


def is_intact(stage: Stage) -> bool:
    """True if the audit verifies, and all of it is signed."""
    report = verified(stage)
    assert report.problems == []
    return report.intact and report.unsealed == 0 and report.signed is not None


def test_sealers_with_files_of_their_own_share_the_work(
    stage: Stage, first: Sealer, second: Sealer, caplog: pytest.LogCaptureFixture
) -> None:
    """Each act is sealed once. A head that is behind the other sealer's is not an alarm."""
    first.run()
    copy_heads(first, second)
    sessions = []
    for sealer in (first, first, second, first, second, second):
        sessions.append(act(stage))
        sealer.run()
    second.sweep.compared = None
    second.run()
    assert Counter(sealed_chains(stage)) == Counter(sessions)
    assert alarm_of(stage) is None
    assert not caplog.records
    assert is_intact(stage)


def test_a_sealer_takes_over_where_another_one_stopped(stage: Stage, first: Sealer, second: Sealer, clock: Clock) -> None:
    """Also a workspace that only the other one has signed, if the workspace is younger than its own file."""
    second.run()
    clock.advance(10)
    young = Stage()
    for _ in range(3):
        act(stage), act(young)
        first.run()
        clock.advance(10)
    session_id = act(young)
    second.run()
    assert sealed_chains(young)[-1] == session_id
    assert is_intact(stage)
    assert is_intact(young)


def test_a_sealer_that_has_never_seen_a_signed_workspace_leaves_it_to_the_other(
    stage: Stage, first: Sealer, second: Sealer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """As a new replica with an empty file of heads. It raises an alarm only once nobody seals."""
    for _ in range(3):
        act(stage)
        first.run()
        clock.advance(seals.LATE_SECONDS)
        second.run()
    assert alarm_of(stage) is None
    assert len(sealed_chains(stage)) == 3
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"]
    act(stage)
    clock.advance(2 * seals.LATE_SECONDS)
    second.run()
    second.run()
    assert "has no head of it: verify it, then run `assent audit adopt`" in (alarm_of(stage) or "")
    [record] = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert "AUDIT ALARM" in record.message
    first.run()
    assert alarm_of(stage) is None
    assert is_intact(stage)


@pytest.mark.parametrize("environment", ["production", "development"])
def test_a_sealer_without_a_key_adds_no_unsigned_seal(
    stage: Stage, first: Sealer, monkeypatch: pytest.MonkeyPatch, environment: str, clock: Clock
) -> None:
    act(stage)
    first.run()
    act(stage)
    keyless = Sealer(monkeypatch, None, None, environment)
    keyless.run()
    assert len(sealed_chains(stage)) == 1
    assert alarm_of(stage) is None, "the other sealer may seal in a moment"
    clock.advance(2 * seals.LATE_SECONDS)
    keyless.run()
    assert "has no key: set ASSENT_AUDIT_KEY" in (alarm_of(stage) or "")
    first.run()
    assert alarm_of(stage) is None
    assert is_intact(stage)


@pytest.mark.parametrize("lack", ["its key", "its head"])
def test_a_sealer_that_stands_aside_passes_the_sweep_on(
    stage: Stage, first: Sealer, second: Sealer, lack: str, clean_redis: str, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """Three times. So it does not take every sweep of a minute, and raise an alarm while another process could seal."""
    use_redis(monkeypatch, clean_redis)
    act(stage)
    clock.advance(seals.LATE_SECONDS)
    first.run()
    clock.advance(seals.LATE_SECONDS)
    act(stage)
    aside = second if lack == "its head" else Sealer(monkeypatch, None, None)
    monkeypatch.setattr(sealing, "_seals", aside.sweep)
    aside.run(lambda: sealing.seal_audit("3"))
    aside.run(lambda: sealing.seal_audit("2"))
    with redis.Redis.from_url(clean_redis) as client:
        wait_for("the sweep is passed on", lambda: client.llen("sweeps"))
        assert [json.loads(message)["headers"]["argsrepr"] for message in client.lrange("sweeps", 0, -1)] == ["('3',)"]
    monkeypatch.setattr(sealing, "_seals", first.sweep)
    first.run(sealing.seal_audit)
    assert not first.sweep.stands_aside
    assert is_intact(stage)


@pytest.mark.parametrize("lack", ["the key", "a readable key", "the file of heads"])
def test_in_production_nothing_is_sealed_without_key_and_heads_and_all_other_sweeps_go_on(
    stage: Stage, first: Sealer, lack: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"the key": None, "a readable key": "AAAA"}.get(lack, first.key)
    session_id = stage.session(bash="always_ask", approval={"timeout_seconds": 60})
    stage.propose(session_id)
    clock.advance(2 * seals.LATE_SECONDS)
    monkeypatch.setattr(sealing, "_seals", SealSweep())
    sealer = Sealer(monkeypatch, key, first.heads if lack != "the file of heads" else None)
    sealer.run(sealing.seal_audit)
    sealer.run(deadlines.expire_approvals)
    assert verified(stage).seals == 0
    assert alarm_of(stage)
    assert [approval.status for approval in stage.approvals(session_id)] == ["expired"]


def test_a_file_of_heads_is_created_only_while_the_audit_is_empty(
    clean_database: object, first: Sealer, heads_file: Path, clock: Clock
) -> None:
    heads_file.unlink()
    first.run()
    assert heads_file.exists()
    stage = Stage()
    act(stage)
    first.run()
    assert is_intact(stage)
    heads_file.unlink()
    clock.advance(2 * seals.LATE_SECONDS)
    act(stage)
    first.run()
    assert not heads_file.exists()


def test_a_head_that_is_not_on_the_chain_is_an_alarm_that_no_other_sealer_withdraws(
    stage: Stage, first: Sealer, second: Sealer, heads_file: Path
) -> None:
    first.run()
    forged = json.loads(heads_file.read_text())
    forged["heads"][stage.workspace_id][1] = "0" * 64
    assert second.heads
    second.heads.write_text(json.dumps(forged))
    for sealer in (second, first, second, first):
        act(stage)
        sealer.run()
        assert "does not go through act" in (alarm_of(stage) or "")


def test_sealers_with_different_keys_accept_each_other_s_seals_if_they_know_the_public_keys(
    stage: Stage, first: Sealer, second: Sealer, key: PublicKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without them, they seal the same chains, but do not answer each other's seals with seals for ever."""
    second.key = seal_key.make()
    public = seal_key.read_private(second.key).public
    for sealer in (first, second):
        sealer.run()
    count = verified(stage).seals
    for sealer in (first, second, first, second):
        sealer.run()
    assert verified(stage).seals == count
    monkeypatch.setenv("ASSENT_AUDIT_PUBLIC_KEYS", f"{key.text} {public.text}")
    session_id = act(stage)
    for sealer in (first, second, first, second):
        sealer.run()
    assert sealed_chains(stage) == [session_id]
