"""Signed seals alone say how far a chain is sealed. An intruder in the database cannot say more, and an old act that no seal covers
is a problem."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from audit.tampering import Intruder, act, named, sealed, verified
from click.testing import CliRunner
from doors.served import Caller, good
from doors.served import key as api_key
from own_database import Clock
from rows.stage import Stage

from api.cli.main import main
from models.audit import seal_key, sealing, seals, signer
from models.audit.acts import BEGINNING, link
from models.audit.coverage import Coverage
from models.audit.seal_key import PublicKey
from models.audit.seal_sweep import SealSweep
from models.audit.verifying import Act, walk
from models.audit.verifying.points import Points
from models.database.transactions import transaction
from models.flow.begin.sessions import delete
from models.flow.lock import lock
from models.settings import settings

pytestmark = pytest.mark.usefixtures("key")


@contextmanager
def hidden(intruder: Intruder, chain: str) -> Iterator[None]:
    """Hide a chain from the sealer's search, as whoever owns the database can."""
    policy = f"CREATE POLICY hidden ON audit AS RESTRICTIVE FOR SELECT TO assent_system USING (chain <> '{chain}')"
    intruder.db.execute(policy)
    try:
        yield
    finally:
        intruder.db.execute("DROP POLICY hidden ON audit")


def append(intruder: Intruder, details: dict[str, object]) -> None:
    """Append a seal without a signature to the workspace's chain."""
    chain = intruder.workspace_id
    last = intruder.rows(chain)[-1]
    seal = last | {"seq": last["seq"] + 1, "action": seals.SEALED, "details": details}
    columns = seal | {"details": json.dumps(details), "hash": bytes.fromhex(link(last["hash"], seal))}
    names, marks = ", ".join(columns), ", ".join(f"%({name})s" for name in columns)
    intruder.db.execute(f"INSERT INTO audit ({names}) VALUES ({marks})", columns)
    intruder.do("UPDATE workspace SET audit_seq = %s, audit_head = %s WHERE id = %s", columns["seq"], columns["hash"], chain)


def test_an_old_act_that_no_seal_covers_is_a_problem(
    stage: Stage, intruder: Intruder, clock: Clock, key: PublicKey, tmp_path: Path
) -> None:
    """In the database and in an export: exit code 1. A young one is only not sealed yet."""
    sweep = SealSweep()
    hidden_id = act(stage)
    with hidden(intruder, hidden_id):
        for _ in range(2):
            act(stage)
            sweep.run()
        report = verified(stage)
        assert report.intact
        assert report.unsealed == intruder.length(hidden_id)
        clock.advance(seals.LATE_SECONDS + 1)
        act(stage)
        sweep.run()
    assert named(verified(stage)) == [("unsealed", hidden_id, 1, intruder.length(hidden_id))]
    run = CliRunner().invoke
    verify = ["audit", "verify", "--workspace", stage.workspace_id]
    assert run(main, verify).exit_code == 1
    file = str(tmp_path / "export")
    run(main, ["audit", "export", "--workspace", stage.workspace_id, "--output", file])
    result = run(main, ["audit", "verify", "--file", file, "--public-key", key.text])
    assert result.exit_code == 1
    assert f"in no seal of {hidden_id}" in result.output
    stage.message(hidden_id)
    sweep.run()
    assert verified(stage).intact


def test_an_old_act_that_no_seal_covers_is_a_problem_for_the_api(stage: Stage, intruder: Intruder, clock: Clock, api: str) -> None:
    hidden_id = act(stage)
    sweep = SealSweep()
    with hidden(intruder, hidden_id):
        clock.advance(seals.LATE_SECONDS + 1)
        act(stage)
        sweep.run()
    with Caller(api, api_key(stage)) as caller:
        response = good(caller.get("/v1/audit/verify"))
    assert response["intact"] is False
    assert [(problem["kind"], problem["chain"]) for problem in response["problems"]] == [("unsealed", hidden_id)]


def test_a_seal_that_somebody_else_wrote_keeps_no_chain_out(stage: Stage, intruder: Intruder) -> None:
    """Nor does a foreign signature in it, nor a head in the session's row that is too low."""
    SealSweep().run()
    session_id = act(stage)
    append(intruder, {"heads": {session_id: [10**9, "0" * 64]}, "key_id": None})
    append(intruder, {"heads": {session_id: [10**9, "0" * 64]}, "key_id": seal_key.trusted_keys()[0].id})
    intruder.do("INSERT INTO seal SELECT workspace_id, audit_seq, %s, 'AAAA' FROM workspace", seal_key.trusted_keys()[0].id)
    intruder.do("UPDATE session SET audit_seq = 1 WHERE id = %s", session_id)
    sweep = SealSweep()
    sweep.run()
    with transaction(stage.workspace_id) as db, signer.signer() as by:
        coverage = by.read(db, stage.workspace_id)
    assert coverage
    assert coverage.covers(session_id, intruder.length(session_id))
    assert not coverage.covers(session_id, intruder.length(session_id) + 1)


def test_seals_from_before_the_key_count_for_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first sweep with a key seals every chain anew."""
    with monkeypatch.context() as keyless:
        keyless.delenv("ASSENT_AUDIT_KEY")
        settings.cache_clear()
        sessions = {act(stage), act(stage)}
        SealSweep().run()
    settings.cache_clear()
    SealSweep().run()
    assert set(coverage_of(stage).sealed) == sessions


def test_while_many_chains_wait_for_their_seal_nothing_is_a_problem(
    stage: Stage, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a long pause of the sealer: only the last seal says that all old acts are sealed."""
    for _ in range(6):
        act(stage)
    clock.advance(10 * seals.LATE_SECONDS)
    monkeypatch.setattr(sealing, "HEADS", 1)
    monkeypatch.setattr(sealing, "CHAINS", 2)
    sweep = SealSweep()
    unsealed = []
    for _ in range(5):
        sweep.run()
        report = verified(stage)
        assert report.problems == []
        unsealed.append(report.unsealed)
    assert unsealed == sorted(unsealed, reverse=True)
    assert unsealed[0] > unsealed[-1] == 0
    assert until_of(stage) is None
    monkeypatch.setattr(sealing, "CHAINS", 100)
    act(stage)
    sweep.run()
    assert until_of(stage)


def test_a_backdated_act_is_a_problem(stage: Stage, intruder: Intruder, clock: Clock) -> None:
    """An intruder who adds an act to an old session cannot date it before the last seal."""
    session_id = act(stage)
    sweep = SealSweep()
    sweep.run()
    clock.advance(2 * seals.LATE_SECONDS)
    act(stage)
    sweep.run()
    intruder.insert(session_id, intruder.length(session_id) + 1, intruder.rows(session_id)[-1]["hash"])
    intruder.rechain(session_id)
    assert [kind for kind, *_ in named(verified(stage))] == ["unsealed"]


def test_the_sealer_and_the_verification_agree_how_far_each_chain_is_sealed(stage: Stage) -> None:
    sessions = [act(stage) for _ in range(4)]
    sealed(stage)
    stage.message(sessions[0])
    sealed(stage)
    stage.message(sessions[1])
    with transaction(stage.workspace_id) as db:
        delete(lock(db, sessions[2], stage.principal))
    coverage = coverage_of(stage)
    with Points() as points:
        for item in walk(stage.workspace_id):
            if isinstance(item, Act) and item.row["action"] in seals.SEALS:
                points.add(item.row["seq"], ((chain, *head) for chain, head in seals.heads_of(item.row["details"]).items()))
        for session_id in sessions:
            assert coverage.sealed[session_id][0] == max(points.of(session_id))


def until_of(stage: Stage) -> datetime | None:
    """The time in the newest seal."""
    with transaction(stage.workspace_id) as db:
        details = db.value("SELECT details FROM audit WHERE action = %(action)s ORDER BY seq DESC LIMIT 1", action=seals.SEALED)
    return seals.until_of(details)


def coverage_of(stage: Stage) -> Coverage:
    """The coverage of the workspace's whole chain."""
    with transaction(stage.workspace_id) as db:
        coverage = Coverage.since(db, stage.workspace_id, seal_key.trusted_keys(), None, BEGINNING)
        coverage.read(db)
    return coverage
