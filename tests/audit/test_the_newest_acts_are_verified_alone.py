"""The page of the audit verifies a long audit from a seal on, says from which, and finds what was changed since."""

import pytest
from audit.tampering import Intruder, act, named, sealed
from rows.stage import Stage

from api.v1.audit import routes
from models.audit import seal_key, verifying
from models.audit.verifying import AuditReport, Beginning, recent
from models.errors import Invalid

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def long(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three sessions, each with a seal behind it. A verification may begin at the last two seals at most."""
    sessions = []
    for _ in range(3):
        sessions.append(act(stage))
        sealed(stage)
    monkeypatch.setattr(recent, "MOST", 20)
    monkeypatch.setattr(routes, "VERIFIED_AT_ONCE", 20)
    return sessions


def recently(stage: Stage) -> AuditReport:
    """Verify as the page does."""
    return routes.verified_lately(stage.workspace_id)


def whole(stage: Stage) -> AuditReport:
    """Verify all acts."""
    return verifying.verify(stage.workspace_id, verifying.walk(stage.workspace_id), seal_key.trusted_keys())


def test_a_long_audit_is_verified_from_a_seal_on(stage: Stage, long: list[str]) -> None:
    report = recently(stage)
    assert report.intact, named(report)
    assert report.acts < whole(stage).acts
    assert report.unsealed == 0
    beginning = Beginning.of(stage.workspace_id)
    assert beginning
    assert report.notes[0].startswith(f"Only the newest acts were looked at, from the seal of act {beginning.seal} of ")


def test_a_short_audit_is_verified_whole(stage: Stage) -> None:
    act(stage)
    sealed(stage)
    report = recently(stage)
    assert (report.acts, report.notes) == (whole(stage).acts, whole(stage).notes)


def test_what_was_changed_since_is_named_as_in_the_whole(stage: Stage, long: list[str], intruder: Intruder) -> None:
    last = intruder.length(long[-1])
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = %s", long[-1], last - 1)
    assert named(recently(stage)) == named(whole(stage)) == [("changed", long[-1], last - 1, last - 1)]
    intruder.rechain(long[-1])
    assert ("rewritten", long[-1], last) in [(kind, chain, end) for kind, chain, _first, end in named(recently(stage))]


@pytest.mark.parametrize("what", ["seq = 5", "seq > 4", "true"])
def test_what_was_removed_since_is_named(stage: Stage, long: list[str], intruder: Intruder, what: str) -> None:
    intruder.do(f"DELETE FROM audit WHERE chain = %s AND {what}", long[-1])
    assert {chain for _, chain, *_ in named(recently(stage))} == {long[-1]}
    assert named(recently(stage)) == named(whole(stage))


def test_a_seal_without_its_signature_is_named(stage: Stage, long: list[str], intruder: Intruder) -> None:
    intruder.do("DELETE FROM seal WHERE seq = (SELECT max(seq) FROM seal)")
    assert [kind for kind, *_ in named(recently(stage))] == ["signature"]


def test_a_session_that_goes_on_is_verified_from_its_seal_on(stage: Stage, long: list[str], intruder: Intruder) -> None:
    before = intruder.length(long[0])
    stage.message(long[0])
    sealed(stage)
    assert recently(stage).intact, named(recently(stage))
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = %s", long[0], before + 1)
    assert named(recently(stage)) == [("changed", long[0], before + 1, before + 1)]


def test_without_a_seal_among_the_newest_acts_the_command_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "VERIFIED_AT_ONCE", 5)
    act(stage)
    with pytest.raises(Invalid, match="run `assent audit verify`"):
        recently(stage)


def test_too_many_acts_since_the_newest_seal_are_not_verified(
    stage: Stage, long: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    act(stage)
    assert recently(stage).intact
    monkeypatch.setattr(recent, "MOST_UNSEALED", 2)
    with pytest.raises(Invalid, match="run `assent audit verify`"):
        recently(stage)
    sealed(stage)
    assert recently(stage).intact
