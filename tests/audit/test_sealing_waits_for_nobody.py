"""However many sweeps run, seals are one chain, include late acts, and lock no session."""

import threading

import psycopg
import pytest
from audit.tampering import Intruder, act, sealed, verified
from own_database import Clock, DatabaseUrls
from races.races_together import together
from rows.stage import Stage

from models.audit import seal_key, seal_sweep, sealing, verifying
from models.audit import seals as seal
from models.audit.acts import Audit
from models.audit.seal_key import PublicKey
from models.audit.verifying import Act
from models.database.transactions import transaction
from models.flow.begin.sessions import delete
from models.flow.lock import lock
from models.settings import settings

pytestmark = pytest.mark.usefixtures("key")


def seals(stage: Stage) -> list[Audit]:
    """The workspace's seals."""
    with transaction(stage.workspace_id) as db:
        return db.find(Audit, "WHERE action = %(action)s ORDER BY seq", action=seal.SEALED)


def test_a_sweep_seals_each_new_head_once(stage: Stage) -> None:
    sweep, sessions = seal_sweep.SealSweep(), [act(stage) for _ in range(3)]
    sweep.run()
    [first] = seals(stage)
    assert set(first.details["heads"]) == set(sessions)
    sweep.run()
    assert len(seals(stage)) == 1, "no chain has a new act"
    stage.message(sessions[1])
    sweep.run()
    assert set(seals(stage)[1].details["heads"]) == {sessions[1]}
    assert verified(stage).unsealed == 0


def test_acts_outside_sessions_are_sealed(stage: Stage) -> None:
    sweep = seal_sweep.SealSweep()
    sweep.run()
    assert seals(stage)[-1].details["heads"] == {}
    report = verified(stage)
    assert (report.unsealed, report.seals, report.intact) == (0, 1, True)


def test_a_sweep_of_another_process_seals_nothing_twice(stage: Stage) -> None:
    act(stage)
    seal_sweep.SealSweep().run()
    seal_sweep.SealSweep().run()
    assert len(seals(stage)) == 1


def test_many_sweeps_at_once_make_one_chain(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """The first sweep seals a session. The others find nothing, or leave the session to their next run."""
    sessions = [act(stage) for _ in range(6)]
    sweeps = [seal_sweep.SealSweep() for _ in range(8)]
    together(*(sweep.run for sweep in sweeps))
    assert not caplog.records, "no sweep failed"
    for sweep in sweeps:
        sweep.run()
    heads = [head for row in seals(stage) for head in row.details["heads"]]
    assert sorted(heads) == sorted(sessions)
    report = verified(stage)
    assert (report.intact, report.unsealed) == (True, 0), report.problems


def test_sweeps_and_work_at_once_make_one_chain(stage: Stage) -> None:
    sessions, over = [act(stage) for _ in range(3)], threading.Event()

    def work(session_id: str) -> None:
        for _ in range(10):
            stage.message(session_id)

    def sweep() -> None:
        mine = seal_sweep.SealSweep()
        while not over.is_set():
            mine.run()

    def all_the_work() -> list[object]:
        try:
            return together(*(lambda s=s: work(s) for s in sessions))  # type: ignore[misc]
        finally:
            over.set()

    assert together(sweep, sweep, all_the_work) == [None, None, [None] * 3]
    sealed(stage)
    report = verified(stage)
    assert (report.intact, report.unsealed) == (True, 0), report.problems


def test_a_verification_during_work_finds_no_problem(stage: Stage) -> None:
    """While sessions, seals and deletions are added."""
    sessions, over = [act(stage) for _ in range(3)], threading.Event()
    sealed(stage)

    def work() -> None:
        sweep = seal_sweep.SealSweep()
        for _ in range(8):
            for session_id in (*sessions, act(stage)):
                stage.message(session_id)
            with transaction(stage.workspace_id) as db:
                delete(lock(db, stage.session(), stage.principal))
            sweep.run()
        over.set()

    def verify() -> list[object]:
        problems: list[object] = []
        while not over.is_set():
            problems += verified(stage).problems
        return problems

    assert together(work, verify, verify) == [None, [], []]


def test_a_session_that_begins_during_a_verification_is_not_missing(stage: Stage) -> None:
    """The verification did not read its acts, and reads the workspace's chain, with the seal, once more at the end."""
    act(stage)
    sealed(stage)
    *before, _head = verifying.walk(stage.workspace_id)
    act(stage)
    sealed(stage)
    *after, head = verifying.walk(stage.workspace_id)
    late = [item for item in after if isinstance(item, Act) and item.row["chain"] == stage.workspace_id and item not in before]
    report = verifying.verify(stage.workspace_id, [*before, *late, head], seal_key.trusted_keys())
    assert report.intact, report.problems
    assert report.unsealed == len(late)


def test_a_late_commit_is_sealed_by_the_next_sweep(stage: Stage) -> None:
    """The act is older than the sweep, and became visible after it."""
    session_id, other = act(stage), act(stage)
    sweep = seal_sweep.SealSweep()
    sweep.run()
    with transaction(stage.workspace_id) as db:
        lock(db, session_id, stage.principal).note("message.received", "sevt_1")
        stage.message(other)
        sweep.run()
        assert set(seals(stage)[-1].details["heads"]) == {other}, "the sweep did not wait"
    sweep.run()
    assert set(seals(stage)[-1].details["heads"]) == {session_id}


def test_an_act_that_a_sweep_missed_is_sealed_when_all_heads_are_compared(stage: Stage, clock: Clock) -> None:
    session_id = act(stage)
    sweep = seal_sweep.SealSweep()
    sweep.run()
    clock.advance(-2 * seal.LATE_SECONDS)
    stage.message(session_id)
    sweep.run()
    assert len(seals(stage)) == 1, "the act is too old for a sweep"
    sweep.compared = None
    sweep.run()
    assert set(seals(stage)[-1].details["heads"]) == {session_id}


def test_a_locked_workspace_is_left_to_the_next_sweep_and_delays_no_other(
    stage: Stage, database_urls: DatabaseUrls, caplog: pytest.LogCaptureFixture
) -> None:
    act(stage)
    other = Stage()
    act(other)
    sweep = seal_sweep.SealSweep()
    with psycopg.connect(database_urls.admin) as db:
        db.execute("SELECT FROM workspace WHERE id = %s FOR NO KEY UPDATE", [stage.workspace_id])
        sweep.run()
    assert (len(seals(stage)), len(seals(other))) == (0, 1)
    assert not caplog.records, "the sweep skips a locked workspace"
    sweep.run()
    assert (len(seals(stage)), len(seals(other))) == (1, 1)


def test_a_locked_session_is_sealed(stage: Stage, database_urls: DatabaseUrls) -> None:
    session_id = act(stage)
    with psycopg.connect(database_urls.admin) as db:
        db.execute("SELECT FROM session WHERE id = %s FOR UPDATE", [session_id])
        sealed(stage)
    assert set(seals(stage)[0].details["heads"]) == {session_id}


def test_more_chains_than_fit_into_one_seal_take_several_seals(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [act(stage) for _ in range(5)]
    monkeypatch.setattr(sealing, "HEADS", 2)
    monkeypatch.setattr(sealing, "CHAINS", 3)
    sweep = seal_sweep.SealSweep()
    for _ in range(3):
        sweep.run()
    sizes = [len(row.details["heads"]) for row in seals(stage)]
    assert max(sizes) == 2
    assert sum(sizes) == len(sessions)
    assert verified(stage).unsealed == 0


def test_without_a_key_seals_are_unsigned_and_the_report_says_so(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASSENT_AUDIT_KEY")
    settings.cache_clear()
    act(stage)
    sealed(stage)
    report = verified(stage)
    assert report.intact
    assert report.signed is None
    assert report.unsealed == 0
    assert any("public key" in note and "anew" in note for note in report.notes)


def test_seals_of_an_old_key_are_valid_while_its_public_half_is_known(
    stage: Stage, key: PublicKey, intruder: Intruder, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = act(stage)
    sealed(stage)
    monkeypatch.setenv("ASSENT_AUDIT_KEY", seal_key.make())
    settings.cache_clear()
    stage.message(session_id)
    sealed(stage)
    [problem] = verified(stage).problems
    assert problem.kind == "signature"
    assert key.id in problem.message
    monkeypatch.setenv("ASSENT_AUDIT_PUBLIC_KEYS", key.text)
    settings.cache_clear()
    report = verified(stage)
    assert report.intact
    assert report.signed
    assert report.signed.key_id != key.id
