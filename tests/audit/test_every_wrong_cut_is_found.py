"""The verifier finds acts cut without an anchor, wrong counts, anchors that replace others, and exports that do not fit."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from audit.cutting import DAY, anchor, archived, cut, delete, export_to, grown_old
from audit.tampering import Intruder, act, named, sealed, verified
from click.testing import CliRunner
from own_database import Clock
from rows.stage import Stage

from api.cli.main import main
from models.audit import anchors, seal_key, verifying
from models.audit.acts import link
from models.audit.seal_key import PublicKey
from models.audit.verifying import AuditReport, Head

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The export of the acts that were cut."""
    return tmp_path / "export.jsonl"


@pytest.fixture
def session_id(stage: Stage, clock: Clock, file: Path) -> str:
    """An archived session whose acts were cut, with the beginning of the workspace's chain. Another session has all of its acts."""
    session_id = archived(stage)
    act(stage)
    grown_old(stage, clock)
    cut(stage, file)
    assert verified(stage).intact
    return session_id


def anchor_rows(stage: Stage, intruder: Intruder) -> list[dict[str, Any]]:
    """The acts of the anchors."""
    return [row for row in intruder.rows(stage.workspace_id) if row["action"] == "audit.anchored"]


def forge(stage: Stage, intruder: Intruder, seq: int, private_key: str | None, **changes: Any) -> None:
    """Change an anchor's details, as somebody does who owns the database; with the key, sign the result again.

    All later acts of the workspace's chain are chained anew, and their seals signed.
    """
    rows = {row["seq"]: row for row in intruder.rows(stage.workspace_id)}
    before = rows[seq]["details"]["before"]
    for number in sorted(number for number in rows if number >= seq):
        row = rows[number]
        if number == seq or row["action"] == "audit.anchored":
            row["details"] |= {"before": before} | (changes if number == seq else {})
        row["hash"] = before = link(before, row)
        values = [json.dumps(row["details"]), row["hash"], stage.workspace_id, number]
        intruder.db.execute("UPDATE audit SET details = %s, hash = decode(%s, 'hex') WHERE chain = %s AND seq = %s", values)
        if private_key:
            signature = seal_key.read_private(private_key).sign(seal_key.signed_words(stage.workspace_id, number, row["hash"]))
            intruder.db.execute(
                "UPDATE seal SET signature = %s WHERE workspace_id = %s AND seq = %s", [signature, stage.workspace_id, number]
            )
    intruder.do("UPDATE workspace SET audit_head = decode(%s, 'hex') WHERE id = %s", before, stage.workspace_id)


def check(stage: Stage, file: Path) -> AuditReport:
    """The report on the audit with an export."""
    report = verified(stage)
    verifying.check_export(report, file, verifying.anchors_of(stage.workspace_id), seal_key.trusted_keys())
    return report


def test_a_chain_removed_without_an_anchor_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    other = act(stage)
    sealed(stage)
    length = intruder.length(other)
    intruder.do("DELETE FROM audit WHERE chain = %s", other)
    assert named(verified(stage)) == [("missing", other, 1, length)]


def test_the_beginning_of_a_chain_removed_without_an_anchor_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    other = act(stage)
    sealed(stage)
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq <= 3", other)
    assert named(verified(stage)) == [("removed", other, 1, 3)]
    first = min(row["seq"] for row in intruder.rows(stage.workspace_id) if row["action"] == "audit.sealed")
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = %s", stage.workspace_id, first)
    assert ("removed", stage.workspace_id) in [problem[:2] for problem in named(verified(stage))]


def test_more_removed_than_an_anchor_says_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    stage.locked(session_id, lambda locked: locked.note("session.updated", session_id))
    stage.locked(session_id, lambda locked: locked.note("session.updated", session_id))
    sealed(stage)
    report = verified(stage)
    assert report.intact, "the chain goes on behind its anchor"
    [first, _] = [row["seq"] for row in intruder.rows(session_id)]
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = %s", session_id, first)
    assert ("removed", session_id) in [problem[:2] for problem in named(verified(stage))]


def test_a_changed_act_behind_an_anchor_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    stage.locked(session_id, lambda locked: locked.note("session.updated", session_id))
    sealed(stage)
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s", session_id)
    [row] = intruder.rows(session_id)
    assert ("changed", session_id, row["seq"], row["seq"]) in named(verified(stage))


def test_a_removed_or_changed_anchor_is_found(stage: Stage, session_id: str, intruder: Intruder) -> None:
    first, *_ = anchor_rows(stage, intruder)
    intruder.do("UPDATE audit SET principal = 'person:nobody' WHERE chain = %s AND seq = %s", stage.workspace_id, first["seq"])
    assert ("changed", stage.workspace_id, first["seq"], first["seq"]) in named(verified(stage))
    intruder.do("DELETE FROM audit WHERE chain = %s AND seq = %s", stage.workspace_id, first["seq"])
    intruder.do("DELETE FROM seal WHERE workspace_id = %s AND seq = %s", stage.workspace_id, first["seq"])
    assert {kind for kind, *_ in named(verified(stage))} >= {"removed", "missing"}


def test_an_anchor_without_a_good_signature_explains_nothing(stage: Stage, session_id: str, intruder: Intruder) -> None:
    first, *_ = anchor_rows(stage, intruder)
    length = first["details"]["cut"][session_id][0]
    intruder.do("UPDATE seal SET signature = 'AAAA' WHERE workspace_id = %s AND seq = %s", stage.workspace_id, first["seq"])
    assert ("missing", session_id, 1, length) in named(verified(stage))


def test_an_intruder_s_own_anchor_explains_nothing(stage: Stage, session_id: str, intruder: Intruder) -> None:
    """It would have to be signed."""
    other = act(stage)
    sealed(stage)
    last = intruder.rows(other)[-1]
    newest = anchor_rows(stage, intruder)[-1]
    named_chains = newest["details"]["cut"] | {other: [last["seq"], last["hash"], last["seq"]]}
    forge(stage, intruder, newest["seq"], None, cut=named_chains)
    intruder.do("DELETE FROM audit WHERE chain = %s", other)
    assert ("missing", other, 1, last["seq"]) in named(verified(stage))


def test_a_wrong_count_is_found(stage: Stage, session_id: str, intruder: Intruder, private_key: str) -> None:
    """Even if it is signed: the sweep would delete nothing behind it."""
    first, *_ = anchor_rows(stage, intruder)
    seq, hash_, count = first["details"]["cut"][session_id]
    forge(stage, intruder, first["seq"], private_key, cut={session_id: [seq, hash_, count - 1]})
    report = verified(stage)
    assert named(report) == [("anchor", stage.workspace_id, first["seq"], first["seq"])]
    assert f"counts {count - 1} acts" in report.problems[0].message


def test_the_sweep_deletes_nothing_behind_a_wrong_count(
    stage: Stage, clock: Clock, file: Path, intruder: Intruder, private_key: str
) -> None:
    session_id = archived(stage)
    grown_old(stage, clock)
    anchor(stage, export_to(stage, file))
    first, *_ = anchor_rows(stage, intruder)
    seq, hash_, count = first["details"]["cut"][session_id]
    forge(stage, intruder, first["seq"], private_key, cut={session_id: [seq, hash_, count + 1]})
    intruder.do("UPDATE audit_anchor SET cut_to = NULL")
    from models.audit import signed_heads

    with signed_heads.open_file(signed_heads.path()) as heads:
        last = intruder.rows(stage.workspace_id)[-1]
        heads.keep(stage.workspace_id, (last["seq"], last["hash"]))
    sealed(stage)
    with pytest.raises(Exception, match="names"):
        delete(stage)
    assert intruder.rows(session_id)


def test_an_anchor_that_replaces_another_is_found(
    stage: Stage, session_id: str, intruder: Intruder, clock: Clock, tmp_path: Path, private_key: str
) -> None:
    archived(stage)
    sealed(stage)
    clock.advance(2 * DAY)
    sealed(stage)
    cut(stage, tmp_path / "second.jsonl")
    first, *_, newest = anchor_rows(stage, intruder)
    again = newest["details"]["cut"] | {session_id: first["details"]["cut"][session_id]}
    forge(stage, intruder, newest["seq"], private_key, cut=again)
    report = verified(stage)
    assert named(report) == [("anchor", stage.workspace_id, newest["seq"], newest["seq"])]
    assert "replaces another" in report.problems[0].message


def test_an_export_is_compared_with_its_anchor(stage: Stage, session_id: str, file: Path, tmp_path: Path) -> None:
    report = check(stage, file)
    assert report.intact, named(report)
    assert any(f"{file} has the {report.cut_acts} acts" in note for note in report.notes)
    another = tmp_path / "another.jsonl"
    another.write_text(file.read_text("utf-8").replace("exported_at", "exported_At"), "utf-8")
    report = check(stage, another)
    assert [problem.kind for problem in report.problems] == ["anchor"]
    assert "no anchor names the export" in report.problems[0].message


def test_an_export_that_lacks_what_its_anchor_names_is_found(
    stage: Stage, session_id: str, intruder: Intruder, file: Path, private_key: str
) -> None:
    """Somebody with the key anchors an export without a session's acts."""
    lines = [line for line in file.read_text("utf-8").splitlines(keepends=True) if f'"chain":"{session_id}"' not in line]
    file.write_text("".join(lines), "utf-8")
    for row in anchor_rows(stage, intruder):
        forge(stage, intruder, row["seq"], private_key, export_sha256=hashlib.sha256(file.read_bytes()).hexdigest())
    problems = check(stage, file).problems
    assert any(f"has not the act {anchor_rows(stage, intruder)[0]['details']['cut'][session_id][0]}" in p.message for p in problems)


def test_a_head_that_was_kept_before_the_cut_is_named(stage: Stage, clock: Clock, file: Path) -> None:
    archived(stage)
    grown_old(stage, clock)
    signature = verified(stage).signed
    assert signature
    sealed(stage)
    archived(stage)
    sealed(stage)
    clock.advance(2 * DAY)
    sealed(stage)
    cut(stage, file)
    report = verified(stage, kept_head=Head(stage.workspace_id, signature.seq, signature.hash))
    assert report.intact, named(report)
    assert any("among the acts that were cut" in note for note in report.notes)


def test_an_auditor_verifies_with_a_file_of_today_the_exports_and_a_public_key(
    stage: Stage, session_id: str, file: Path, tmp_path: Path, key: PublicKey
) -> None:
    today = export_to(stage, tmp_path / "today.jsonl")
    words = ["audit", "verify", "--file", str(today), "--export", str(file), "--public-key", key.text]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    assert "Verified from the anchor of act" in result.output
    assert "acts that were cut behind the anchor(s) of act" in result.output
    result = CliRunner().invoke(main, [*words[:-2], "--export", str(today), "--public-key", key.text])
    assert result.exit_code == 1
    assert "no anchor names the export" in result.output


def test_the_commands_export_cut_and_verify(stage: Stage, clock: Clock, file: Path, intruder: Intruder) -> None:
    session_id = archived(stage)
    grown_old(stage, clock)
    of_workspace = ["--workspace", stage.workspace_id]
    assert CliRunner().invoke(main, ["audit", "export", *of_workspace, "--output", str(file)]).exit_code == 0
    words = ["audit", "cut", *of_workspace, "--export", str(file), "--reason", "Older than a day."]
    assert CliRunner().invoke(main, words, input="n\n").exit_code == 1
    result = CliRunner().invoke(main, [*words, "--yes"])
    assert result.exit_code == 0, result.output
    assert "behind 2 anchor(s)" in result.output
    sealed(stage)
    assert delete(stage)
    assert not intruder.rows(session_id)
    result = CliRunner().invoke(main, ["audit", "verify", *of_workspace, "--export", str(file), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["anchor"]["export_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    file.write_text("nothing", "utf-8")
    result = CliRunner().invoke(main, [*words, "--yes"])
    assert result.exit_code == 1
    assert "is not a JSON object" in result.output


def test_the_table_of_anchors_has_no_authority(stage: Stage, session_id: str, intruder: Intruder) -> None:
    intruder.do("DELETE FROM audit_anchor")
    report = verified(stage)
    assert report.intact, named(report)
    assert anchors.cuts_of({"cut": {"a": [1, "h", 1], "b": "no"}}) == [anchors.Cut("a", 1, "h", 1)]
