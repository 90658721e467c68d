"""A text that somebody wrote can be erased. The chain has only its digest, still verifies, and names who erased the text."""

import json
from pathlib import Path
from typing import Any

import pytest
from audit.tampering import Intruder, named, sealed, verified
from click.testing import CliRunner
from doors.served import Caller, bad, good, key
from rows.stage import Stage, call, rules

from api.cli.main import main
from models.audit import erasing, seal_key, verifying
from models.audit import text as audit_text
from models.audit.principal import Principal
from models.database.transactions import transaction
from models.errors import Invalid, NotFound
from models.flow.begin import sessions
from models.flow.lock import lock
from models.workspace.agent import Agent
from models.workspace.api_key import ApiKey, NewKey
from models.workspace.environment import Environment, NewEnvironment
from models.workspace.row import Workspace

pytestmark = pytest.mark.usefixtures("key")

ANNA = "Anna Example"
REASON = f"{ANNA} has not been asked"


@pytest.fixture
def session_id(stage: Stage) -> str:
    """A session in which a person denied a call, with a message, and everything is sealed."""
    session_id = denied(stage)
    sealed(stage)
    return session_id


def denied(stage: Stage) -> str:
    session_id = stage.session(bash="always_ask")
    asked = stage.propose(session_id)
    stage.confirm(session_id, asked.id, "deny", deny_message=REASON)
    return session_id


def texts(stage: Stage) -> dict[tuple[str, str], str]:
    """The remaining texts of the workspace, by action and name."""
    with transaction(stage.workspace_id) as db:
        rows = db.rows("SELECT action, name, text FROM audit JOIN audit_text USING (chain, seq)")
        return {(action, name): text for action, name, text in rows}


def erase(stage: Stage, **which: Any) -> audit_text.Erasure:
    with transaction(stage.workspace_id) as db:
        return erasing.erase(db, stage.principal, **which)


def decided(stage: Stage, intruder: Intruder, session_id: str) -> int:
    """The number of the decision's act."""
    return next(row["seq"] for row in intruder.rows(session_id) if row["action"] == "approval.decided")


def test_no_text_that_somebody_wrote_is_in_the_chain(stage: Stage, intruder: Intruder) -> None:
    """Neither the text nor a digest without a salt."""
    by = Principal("person", "operator", stage.workspace_id)
    with transaction(stage.workspace_id) as db:
        Agent.create(db, by, {"name": ANNA, "model": {"id": "m"}, "tools": []})
        ApiKey.create(db, NewKey(ANNA), by=by)
        Environment.create(db, by, NewEnvironment(ANNA, description=ANNA, metadata={}, self_hosted=True))
    with transaction(stage.workspace_id) as db:
        Workspace.change_policies(db, by, {"approval": {"prompt": ANNA}})
    denied(stage)
    session_id = stage.session(bash=rules(("deny", "bash(rm *)"), ("allow", f"bash(echo {ANNA})")))
    stage.message(session_id)
    stage.reply(session_id, call(command=f"echo {ANNA}"))
    for more in ({"scope": "session", "match": "bash(mail Anna*)"}, {"respond": [{"type": "text", "text": ANNA}]}):
        session_id = stage.session(bash="always_ask")
        asked = stage.propose(session_id, call(command="mail Anna"))
        stage.confirm(session_id, asked.id, **more)
    chained = json.dumps([row["details"] for chain in chains(intruder) for row in intruder.rows(chain)])
    assert "Anna" not in chained
    beside = texts(stage)
    hashed = next(text for (_, name), text in beside.items() if name == "respond_sha256")
    assert hashed not in chained
    with_anna = {name for (_, name), text in beside.items() if "Anna" in text}
    assert with_anna == {"name", "approval.to", "deny_message", "match", "covers", "rule"}
    assert verified(stage).problems_found == 1, "only that no seal exists yet"


def chains(intruder: Intruder) -> list[str]:
    return [row[0] for row in intruder.db.execute("SELECT DISTINCT chain FROM audit")]


def test_an_erased_text_is_gone_with_its_salt_and_the_report_names_who_erased_it(
    stage: Stage, session_id: str, intruder: Intruder
) -> None:
    seq = decided(stage, intruder, session_id)
    assert texts(stage)["approval.decided", "deny_message"] == REASON
    erasure = erase(stage, chain=session_id, seq=seq)
    assert erasure == audit_text.Erasure(1, {session_id: [seq]}, has_more=False)
    assert ("approval.decided", "deny_message") not in texts(stage)
    assert intruder.db.execute("SELECT count(*) FROM audit_text WHERE text LIKE '%Anna%'").fetchone() == (0,)
    sealed(stage)
    report = verified(stage)
    assert report.intact, report.problems
    assert f"1 text(s) of 1 act(s) are erased by {stage.principal}: their digests are still in the chain." in report.notes
    [erased] = [row for row in intruder.rows(stage.workspace_id) if row["action"] == audit_text.ERASED]
    assert (erased["principal"], erased["details"]["acts"]) == (str(stage.principal), {session_id: [seq]})


def test_texts_are_erased_by_chain_or_by_principal(stage: Stage, session_id: str) -> None:
    other = denied(stage)
    before = len(texts(stage))
    assert erase(stage, by="person:nobody") == audit_text.Erasure(0, {}, has_more=False)
    assert erase(stage, chain=other, by=str(stage.principal)).texts == 1
    assert ("approval.decided", "deny_message") in texts(stage), "the other session's"
    assert erase(stage, by=str(stage.principal)).texts >= 1
    assert ("approval.decided", "deny_message") not in texts(stage)
    assert 0 < len(texts(stage)) < before
    with pytest.raises(Invalid, match="name a chain or a principal"):
        erase(stage)
    with pytest.raises(Invalid, match="seq"):
        erase(stage, by="person:nobody", seq=1)


def test_many_acts_are_erased_in_several_transactions(stage: Stage, session_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_text, "ACTS", 1)
    first, second = erase(stage, chain=session_id), erase(stage, chain=session_id)
    assert (first.has_more, second.has_more) == (True, False)
    assert erase(stage, chain=session_id).texts == 0
    assert verified(stage).intact


def test_a_text_removed_without_an_act_is_named(stage: Stage, session_id: str, intruder: Intruder) -> None:
    seq = decided(stage, intruder, session_id)
    intruder.do("DELETE FROM audit_text WHERE chain = %s AND seq = %s", session_id, seq)
    assert named(verified(stage)) == [("removed", session_id, seq, seq)]


@pytest.mark.parametrize("change", ["text = 'Yes, please'", "salt = decode(repeat('0', 32), 'hex')", "salt = ''"])
def test_a_changed_text_is_named(stage: Stage, session_id: str, intruder: Intruder, change: str) -> None:
    seq = decided(stage, intruder, session_id)
    intruder.do(f"UPDATE audit_text SET {change} WHERE chain = %s AND seq = %s", session_id, seq)
    assert named(verified(stage)) == [("changed", session_id, seq, seq)]


def test_the_report_says_that_a_backup_restored_erased_texts(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.db.execute("CREATE TEMP TABLE backup AS SELECT * FROM audit_text")
    erase(stage, chain=session_id)
    intruder.db.execute("INSERT INTO audit_text SELECT * FROM backup ON CONFLICT DO NOTHING")
    report = verified(stage)
    assert report.intact
    assert any("although they were erased" in note for note in report.notes)


def test_texts_of_a_deleted_session_stay_and_can_be_erased(stage: Stage, session_id: str) -> None:
    stage.reply(session_id, {"type": "text", "text": "Then not."})
    with transaction(stage.workspace_id) as db:
        sessions.delete(lock(db, session_id, stage.principal))
    assert texts(stage)["approval.decided", "deny_message"] == REASON
    assert erase(stage, chain=session_id).texts >= 1
    assert verified(stage).intact


@pytest.mark.parametrize("without_texts", [False, True])
def test_a_file_verifies_with_texts_and_without(
    stage: Stage, session_id: str, tmp_path: Path, intruder: Intruder, without_texts: bool
) -> None:
    erase(stage, chain=session_id, seq=decided(stage, intruder, session_id))
    denied(stage)
    sealed(stage)
    file = tmp_path / "export.jsonl"
    options = ["--without-texts"] if without_texts else []
    words = ["audit", "export", "--workspace", stage.workspace_id, "--output", str(file), *options]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert (ANNA in file.read_text("utf-8")) is not without_texts
    with file.open(encoding="utf-8") as lines:
        workspace_id, items = verifying.read_export(iter(lines))
        report = verifying.verify(workspace_id, items, seal_key.trusted_keys())
    assert report.intact, report.problems
    notes = " ".join(report.notes)
    assert ("left out of this file" in notes) is without_texts
    assert (f"erased by {stage.principal}" in notes) is not without_texts
    changed = file.read_text("utf-8").replace(ANNA, "Bert Example")
    report = verifying.verify(workspace_id, verifying.read_export(iter(changed.splitlines()))[1], seal_key.trusted_keys())
    assert report.intact is without_texts


def test_the_command_erases_after_a_question(stage: Stage, session_id: str) -> None:
    words = ["audit", "erase", "--workspace", stage.workspace_id, "--chain", session_id]
    assert CliRunner().invoke(main, words, input="n\n").exit_code == 1
    assert ("approval.decided", "deny_message") in texts(stage)
    result = CliRunner().invoke(main, [*words, "--yes"])
    assert "2 text(s) erased." in result.output
    assert any("erased by person:" in note for note in verified(stage).notes)


def test_the_api_shows_and_erases_texts(stage: Stage, api: str) -> None:
    session_id = denied(stage)
    with Caller(api, key(stage)) as caller, Caller(api, key(stage, "read", "approvals")) as other:
        query = {"session_id": session_id, "action": "approval.decided"}
        [shown] = good(caller.get("/v1/audit", params=query))["data"]
        assert shown["texts"] == {"deny_message": REASON}
        assert ANNA not in json.dumps(shown["details"])
        bad(other.post("/v1/audit/erase", json={"chain": session_id}), 403, "'admin'")
        bad(caller.post("/v1/audit/erase", json={}), 400, "chain")
        erasure = good(caller.post("/v1/audit/erase", json={"chain": session_id, "seq": shown["seq"]}))
        assert erasure == {
            "type": "audit_erasure",
            "texts": 1,
            "acts": {session_id: [shown["seq"]]},
            "has_more": False,
            "on_hold": 0,
        }
        [shown] = good(caller.get("/v1/audit", params=query))["data"]
        assert shown["texts"] == {"deny_message": None}
        assert ANNA not in caller.get("/v1/audit/export").text
        assert all("texts" not in json.loads(line) for line in caller.get("/v1/audit/export?texts=false").text.splitlines())


def test_another_workspace_s_texts_are_not_erased(stage: Stage, session_id: str) -> None:
    stranger = Stage()
    with pytest.raises(NotFound):
        erase(stranger, chain=session_id)
    assert ("approval.decided", "deny_message") in texts(stage)
