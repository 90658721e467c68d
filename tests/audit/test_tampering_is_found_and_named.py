"""Whoever can write to the database, and has not the key, changes nothing that was sealed without being found out."""

import pytest
from audit.tampering import Intruder, act, named, sealed, verified
from rows.stage import Stage

from models import flow
from models.audit.seal_key import PublicKey
from models.audit.verifying import Head
from models.database.transactions import transaction

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def session_id(stage: Stage) -> str:
    """A session whose acts are sealed, between two others."""
    act(stage)
    session_id = act(stage)
    act(stage)
    sealed(stage)
    return session_id


def test_what_nobody_touched_is_intact(stage: Stage, session_id: str, key: PublicKey) -> None:
    report = verified(stage)
    assert report.intact, named(report)
    assert report.chains == 4
    assert report.unsealed == 0
    assert report.signed
    assert report.signed.key_id == key.id


@pytest.mark.parametrize("column", ["at", "principal", "address", "action", "subject_id", "details", "workspace_id", "hash"])
def test_a_changed_act_is_named(stage: Stage, session_id: str, intruder: Intruder, column: str) -> None:
    said = {"at": "at - interval '1 day'", "details": """'{"result": "allow"}'""", "address": "'10.0.0.1'"}.get(
        column, f"{column} || 'x'"
    )
    intruder.do(f"UPDATE audit SET {column} = {said} WHERE chain = %s AND seq = 4", session_id)
    expected = {"workspace_id": ("removed", 4, 4), "hash": ("changed", 4, 4)}.get(column, ("changed", 4, 4))
    assert (expected[0], session_id, *expected[1:]) in named(verified(stage))


def test_an_act_changed_with_a_hash_that_fits_it_is_named_with_its_neighbour(
    stage: Stage, session_id: str, intruder: Intruder
) -> None:
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 4", session_id)
    before, row = intruder.rows(session_id)[2:4]
    from models.audit.acts import link

    intruder.do("UPDATE audit SET hash = decode(%s, 'hex') WHERE chain = %s AND seq = 4", link(before["hash"], row), session_id)
    assert named(verified(stage)) == [("changed", session_id, 5, 5)]


def test_a_chain_made_anew_is_not_the_one_that_was_sealed(stage: Stage, session_id: str, intruder: Intruder) -> None:
    """Also if it went on and was sealed again."""
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 4", session_id)
    intruder.chain_anew(session_id)
    length = intruder.length(session_id)
    assert named(verified(stage)) == [("rewritten", session_id, 1, length)]
    stage.message(session_id)
    sealed(stage)
    assert named(verified(stage)) == [("rewritten", session_id, 1, length)]


def test_a_chain_made_anew_is_narrowed_down_by_its_earlier_seals(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    stage.message(session_id)
    sealed(stage)
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = %s", session_id, length + 1)
    intruder.chain_anew(session_id)
    assert named(verified(stage)) == [("rewritten", session_id, length + 1, intruder.length(session_id))]


def test_a_removed_act_is_named(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq IN (3, 4)", session_id)
    assert named(verified(stage)) == [("removed", session_id, 3, 4)]


def test_the_acts_before_it_moved_up_are_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = 3", session_id)
    for seq in range(4, intruder.length(session_id) + 2):
        intruder.move(session_id, seq, seq - 1)
    intruder.chain_anew(session_id)
    [(kind, chain, *_)] = named(verified(stage))
    assert (kind, chain) == ("cut", session_id)


def test_an_act_put_in_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    for seq in range(length, 3, -1):
        intruder.move(session_id, seq, seq + 1)
    intruder.insert(session_id, 4, intruder.rows(session_id)[2]["hash"])
    intruder.chain_anew(session_id)
    assert named(verified(stage)) == [("rewritten", session_id, 1, length)]


def test_an_act_put_behind_the_end_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    rows = intruder.rows(session_id)
    intruder.insert(session_id, len(rows) + 1, rows[-1]["hash"])
    assert named(verified(stage)) == [("inserted", session_id, len(rows) + 1, len(rows) + 1)]


def test_a_chain_of_nobody_s_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.insert("sesn_0", 1, "")
    assert named(verified(stage)) == [("inserted", "sesn_0", 1, 1)]


def test_a_cut_tail_is_found_even_if_the_session_s_row_fits(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", session_id, length - 2)
    intruder.chain_anew(session_id)
    assert named(verified(stage)) == [("cut", session_id, length - 1, length)]


def test_a_session_s_acts_that_are_all_gone_are_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    intruder.do("DELETE FROM audit WHERE chain = %s", session_id)
    assert named(verified(stage)) == [("missing", session_id, 1, length)]


def test_a_session_that_is_gone_with_everything_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    for table in ("audit WHERE chain", "sealed WHERE chain", "session WHERE id"):
        intruder.do(f"DELETE FROM {table} = %s", session_id)
    assert named(verified(stage)) == [("missing", session_id, 1, length)]


def test_a_session_s_row_that_is_gone_without_an_act_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    intruder.do("DELETE FROM session WHERE id = %s", session_id)
    assert named(verified(stage)) == [("session_gone", session_id, 1, length)]


def test_a_head_changed_on_the_session_s_row_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("UPDATE session SET audit_head = 'x' WHERE id = %s", session_id)
    length = intruder.length(session_id)
    assert named(verified(stage)) == [("changed", session_id, length, length)]


def test_a_deleted_session_s_acts_stay_and_still_verify(stage: Stage, session_id: str, intruder: Intruder) -> None:
    """Sealed before or after, and by the act of its deletion alone."""
    with transaction(stage.workspace_id) as db:
        flow.delete(db, flow.lock(db, session_id), stage.principal)
    assert intruder.rows(session_id)[-1]["action"] == "session.deleted"
    assert verified(stage).intact
    sealed(stage)
    report = verified(stage)
    assert report.intact
    assert report.unsealed == 0
    length = intruder.length(session_id)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = %s", session_id, length)
    assert named(verified(stage)) == [("cut", session_id, length, length)]


def test_a_seal_that_was_changed_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    """Even if the workspace's chain is made anew: there is no signature of it."""
    seq = intruder.length(stage.workspace_id)
    intruder.do(
        "UPDATE audit SET details = details #- %s WHERE chain = %s AND seq = %s", ["heads", session_id], stage.workspace_id, seq
    )
    assert ("changed", stage.workspace_id, seq, seq) in named(verified(stage))
    intruder.chain_anew(stage.workspace_id)
    no_signature = ("unsigned", stage.workspace_id, 1, seq)
    assert named(verified(stage)) == [("signature", stage.workspace_id, seq, seq), no_signature]


def test_a_signature_that_is_gone_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    seq = intruder.length(stage.workspace_id)
    intruder.do("DELETE FROM seal WHERE workspace_id = %s", stage.workspace_id)
    no_signature = ("unsigned", stage.workspace_id, 1, seq)
    assert named(verified(stage)) == [("signature", stage.workspace_id, seq, seq), no_signature]


def test_a_seal_made_anew_without_a_signature_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    stage.message(session_id)
    sealed(stage)
    seq = intruder.length(stage.workspace_id)
    intruder.do("DELETE FROM seal WHERE workspace_id = %s AND seq = %s", stage.workspace_id, seq)
    intruder.do(
        """UPDATE audit SET details = details || '{"key_id": null}' WHERE chain = %s AND seq = %s""", stage.workspace_id, seq
    )
    intruder.chain_anew(stage.workspace_id)
    assert named(verified(stage)) == [("unsigned", stage.workspace_id, seq, seq)]


def test_everything_put_back_to_an_earlier_seal_is_found_by_a_head_that_was_kept(
    stage: Stage, session_id: str, intruder: Intruder
) -> None:
    length, before = intruder.length(stage.workspace_id), intruder.length(session_id)
    stage.message(session_id)
    sealed(stage)
    signature = verified(stage).signed
    assert signature
    kept = Head(stage.workspace_id, signature.seq, signature.hash)
    assert verified(stage, kept=kept).intact
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", session_id, before)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", stage.workspace_id, length)
    intruder.do("DELETE FROM seal WHERE seq > %s", length)
    intruder.chain_anew(session_id)
    intruder.chain_anew(stage.workspace_id)
    report = verified(stage)
    assert report.intact, "of itself it is a good state"
    assert "Only a head kept elsewhere" in " ".join(report.notes)
    assert named(verified(stage, kept=kept)) == [("cut", stage.workspace_id, length + 1, signature.seq)]


def test_what_is_not_sealed_yet_is_said(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    event = stage.message(session_id)
    report = verified(stage)
    assert report.intact
    assert report.unsealed == intruder.length(session_id) - length > 0
    assert report.unsealed_since == event.created_at
    assert any(f"not sealed yet, since {event.created_at.isoformat()}" in note for note in report.notes)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", session_id, length)
    assert ("cut", session_id) == named(verified(stage))[0][:2], "the session's row knows better"
    intruder.chain_anew(session_id)
    assert verified(stage).intact, "which is why it is said"


def test_one_session_can_be_verified_alone(stage: Stage, session_id: str, intruder: Intruder) -> None:
    from models.audit import seal_key, verifying

    other = act(stage)
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 4", session_id)

    def only(chain: str) -> list[tuple[str, str, int, int]]:
        walk = verifying.walk(stage.workspace_id, chain)
        return named(verifying.verify(stage.workspace_id, walk, seal_key.known(), only=chain))

    assert only(other) == []
    assert only(session_id) == [("changed", session_id, 4, 4)]
