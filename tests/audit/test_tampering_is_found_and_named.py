"""The verifier names every change of sealed acts by somebody who can write to the database and has no key."""

import pytest
from audit.tampering import Intruder, act, named, sealed, verified
from rows.stage import Stage

from models.audit import seal_key, verifying
from models.audit.acts import link
from models.audit.seal_key import PublicKey
from models.audit.verifying import Head
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.flow.lock import lock

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def session_id(stage: Stage) -> str:
    """A session whose acts are sealed, between two others."""
    act(stage)
    session_id = act(stage)
    act(stage)
    sealed(stage)
    return session_id


def test_an_unchanged_audit_is_intact(stage: Stage, session_id: str, key: PublicKey) -> None:
    report = verified(stage)
    assert report.intact, named(report)
    assert report.chains == 4
    assert report.unsealed == 0
    assert report.signed
    assert report.signed.key_id == key.id


@pytest.mark.parametrize("column", ["at", "principal", "address", "action", "subject_id", "details", "workspace_id", "hash"])
def test_a_changed_act_is_named(stage: Stage, session_id: str, intruder: Intruder, column: str) -> None:
    value = {"at": "at - interval '1 day'", "details": """'{"result": "allow"}'""", "address": "'10.0.0.1'"}.get(
        column, f"{column} || 'x'"
    )
    intruder.do(f"UPDATE audit SET {column} = {value} WHERE chain = %s AND seq = 4", session_id)
    expected = {"workspace_id": ("removed", 4, 4), "hash": ("changed", 4, 4)}.get(column, ("changed", 4, 4))
    assert (expected[0], session_id, *expected[1:]) in named(verified(stage))


def test_an_act_changed_together_with_its_hash_breaks_the_next_act(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 4", session_id)
    before, row = intruder.rows(session_id)[2:4]
    intruder.do("UPDATE audit SET hash = decode(%s, 'hex') WHERE chain = %s AND seq = 4", link(before["hash"], row), session_id)
    assert named(verified(stage)) == [("changed", session_id, 5, 5)]


def test_a_recomputed_chain_is_named_as_rewritten(stage: Stage, session_id: str, intruder: Intruder) -> None:
    """Even after it grew and was sealed again."""
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 4", session_id)
    intruder.rechain(session_id)
    length = intruder.length(session_id)
    assert named(verified(stage)) == [("rewritten", session_id, 1, length)]
    stage.message(session_id)
    sealed(stage)
    assert named(verified(stage)) == [("rewritten", session_id, 1, length)]


def test_earlier_seals_narrow_down_the_rewritten_part_of_a_chain(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    stage.message(session_id)
    sealed(stage)
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = %s", session_id, length + 1)
    intruder.rechain(session_id)
    assert named(verified(stage)) == [("rewritten", session_id, length + 1, intruder.length(session_id))]


def test_a_removed_act_is_named(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq IN (3, 4)", session_id)
    assert named(verified(stage)) == [("removed", session_id, 3, 4)]


def test_a_removed_act_is_found_even_if_the_later_ones_are_renumbered(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = 3", session_id)
    for seq in range(4, intruder.length(session_id) + 2):
        intruder.move(session_id, seq, seq - 1)
    intruder.rechain(session_id)
    [(kind, chain, *_)] = named(verified(stage))
    assert (kind, chain) == ("cut", session_id)


def test_an_act_inserted_into_a_chain_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    for seq in range(length, 3, -1):
        intruder.move(session_id, seq, seq + 1)
    intruder.insert(session_id, 4, intruder.rows(session_id)[2]["hash"])
    intruder.rechain(session_id)
    assert named(verified(stage)) == [("rewritten", session_id, 1, length)]


def test_an_act_appended_to_a_chain_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    rows = intruder.rows(session_id)
    intruder.insert(session_id, len(rows) + 1, rows[-1]["hash"])
    assert named(verified(stage)) == [("inserted", session_id, len(rows) + 1, len(rows) + 1)]


def test_a_chain_without_a_session_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.insert("sesn_0", 1, "")
    assert named(verified(stage)) == [("inserted", "sesn_0", 1, 1)]


def test_a_cut_chain_is_found_even_if_the_session_s_row_fits(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", session_id, length - 2)
    intruder.rechain(session_id)
    assert named(verified(stage)) == [("cut", session_id, length - 1, length)]


def test_a_removed_chain_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    intruder.do("DELETE FROM audit WHERE chain = %s", session_id)
    assert named(verified(stage)) == [("missing", session_id, 1, length)]


def test_a_removed_session_with_its_chain_and_seals_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    for table in ("audit WHERE chain", "session WHERE id"):
        intruder.do(f"DELETE FROM {table} = %s", session_id)
    assert named(verified(stage)) == [("missing", session_id, 1, length)]


def test_a_session_deleted_without_an_act_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    intruder.do("DELETE FROM session WHERE id = %s", session_id)
    assert named(verified(stage)) == [("session_gone", session_id, 1, length)]


def test_a_head_changed_on_the_session_s_row_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("UPDATE session SET audit_head = 'x' WHERE id = %s", session_id)
    length = intruder.length(session_id)
    assert named(verified(stage)) == [("changed", session_id, length, length)]


def test_the_acts_of_a_deleted_session_stay_and_verify(stage: Stage, session_id: str, intruder: Intruder) -> None:
    with transaction(stage.workspace_id) as db:
        sessions.delete(lock(db, session_id, stage.principal))
    assert intruder.rows(session_id)[-1]["action"] == "session.deleted"
    assert verified(stage).intact
    sealed(stage)
    report = verified(stage)
    assert report.intact
    assert report.unsealed == 0
    length = intruder.length(session_id)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = %s", session_id, length)
    assert named(verified(stage)) == [("cut", session_id, length, length)]


def test_a_changed_seal_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    """Even if the workspace's chain is recomputed, because the signature is missing."""
    seq = intruder.length(stage.workspace_id)
    intruder.do(
        "UPDATE audit SET details = details #- %s WHERE chain = %s AND seq = %s", ["heads", session_id], stage.workspace_id, seq
    )
    assert ("changed", stage.workspace_id, seq, seq) in named(verified(stage))
    intruder.rechain(stage.workspace_id)
    no_signature = ("unsigned", stage.workspace_id, 1, seq)
    assert named(verified(stage)) == [("signature", stage.workspace_id, seq, seq), no_signature]


def test_a_removed_signature_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    seq = intruder.length(stage.workspace_id)
    intruder.do("DELETE FROM seal WHERE workspace_id = %s", stage.workspace_id)
    no_signature = ("unsigned", stage.workspace_id, 1, seq)
    assert named(verified(stage)) == [("signature", stage.workspace_id, seq, seq), no_signature]


def test_a_forged_unsigned_seal_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    stage.message(session_id)
    sealed(stage)
    seq = intruder.length(stage.workspace_id)
    intruder.do("DELETE FROM seal WHERE workspace_id = %s AND seq = %s", stage.workspace_id, seq)
    intruder.do(
        """UPDATE audit SET details = details || '{"key_id": null}' WHERE chain = %s AND seq = %s""", stage.workspace_id, seq
    )
    intruder.rechain(stage.workspace_id)
    assert named(verified(stage)) == [("unsigned", stage.workspace_id, seq, seq)]


def test_a_roll_back_to_an_earlier_seal_is_found_with_a_kept_head(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length, before = intruder.length(stage.workspace_id), intruder.length(session_id)
    stage.message(session_id)
    sealed(stage)
    signature = verified(stage).signed
    assert signature
    kept = Head(stage.workspace_id, signature.seq, signature.hash)
    assert verified(stage, kept_head=kept).intact
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", session_id, before)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", stage.workspace_id, length)
    intruder.do("DELETE FROM seal WHERE seq > %s", length)
    intruder.rechain(session_id)
    intruder.rechain(stage.workspace_id)
    report = verified(stage)
    assert report.intact, "nothing in the database shows the roll-back"
    assert "Only a head kept elsewhere" in " ".join(report.notes)
    assert named(verified(stage, kept_head=kept)) == [("cut", stage.workspace_id, length + 1, signature.seq)]


def test_the_report_counts_acts_that_are_not_sealed_yet(stage: Stage, session_id: str, intruder: Intruder) -> None:
    length = intruder.length(session_id)
    event = stage.message(session_id)
    report = verified(stage)
    assert report.intact
    assert report.unsealed == intruder.length(session_id) - length > 0
    assert report.unsealed_since == event.created_at
    assert any(f"not sealed yet, since {event.created_at.isoformat()}" in note for note in report.notes)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq > %s", session_id, length)
    assert ("cut", session_id) == named(verified(stage))[0][:2], "the session's row shows the cut"
    intruder.rechain(session_id)
    assert verified(stage).intact, "a cut of unsealed acts can be hidden"


def test_one_session_can_be_verified_alone(stage: Stage, session_id: str, intruder: Intruder) -> None:
    other = act(stage)
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = 4", session_id)

    def only(chain: str) -> list[tuple[str, str, int, int]]:
        walk = verifying.walk(stage.workspace_id, chain)
        return named(verifying.verify(stage.workspace_id, walk, seal_key.trusted_keys(), only=chain))

    assert only(other) == []
    assert only(session_id) == [("changed", session_id, 4, 4)]
