"""`assent audit` verifies an export anywhere, without the server, the database or the private key."""

import json
from pathlib import Path
from typing import Any

import pytest
from audit.tampering import Intruder, act, sealed
from click.testing import CliRunner, Result
from own_database import Clock
from rows.stage import Stage

from api.cli.main import main
from models.audit import alarm, seal_key, seal_sweep, seals
from models.audit.seal_key import PublicKey
from models.database.transactions import transaction
from models.flow.begin import sessions
from models.flow.lock import lock
from models.settings import settings


def run(*words: str) -> Result:
    """Run `assent audit` with these words."""
    return CliRunner().invoke(main, ["audit", *words])


@pytest.fixture
def export(stage: Stage, key: PublicKey, tmp_path: Path) -> Path:
    """An export of two sessions, one of them deleted, and the acts after the last seal."""
    act(stage)
    gone = act(stage)
    sealed(stage)
    with transaction(stage.workspace_id) as db:
        sessions.delete(lock(db, gone, stage.principal))
    sealed(stage)
    stage.session()
    file = tmp_path / "export.jsonl"
    result = run("export", "--workspace", stage.workspace_id, "--output", str(file))
    assert result.exit_code == 0, result.output
    return file


def offline(file: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> Result:
    """Verify a file without database and private key."""
    for name in ("DATABASE_URL", "DATABASE_SYSTEM_URL", "ASSENT_AUDIT_KEY"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    return run("verify", "--file", str(file), *more)


def edit(file: Path, line: int, **changes: Any) -> None:
    """Change one line of an export."""
    lines = file.read_text("utf-8").splitlines(keepends=True)
    lines[line] = json.dumps(json.loads(lines[line]) | changes) + "\n"
    file.write_text("".join(lines), "utf-8")


def test_an_untouched_file_is_intact(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    result = offline(export, monkeypatch, "--public-key", key.text)
    assert result.exit_code == 0, result.output
    assert key.id in result.output
    assert "not sealed yet" in result.output
    assert result.output.endswith("Intact.\n")


def test_without_a_public_key_the_report_says_that_signatures_were_not_checked(
    export: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = offline(export, monkeypatch)
    assert result.exit_code == 0, result.output
    assert "Signatures were not checked" in result.output


def test_another_public_key_does_not_verify(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = seal_key.read_private(seal_key.make()).public
    result = offline(export, monkeypatch, "--public-key", other.text)
    assert result.exit_code == 1
    assert "not known here" in result.output


def test_a_changed_line_is_named(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(export, 2, principal="person:nobody")
    result = offline(export, monkeypatch, "--public-key", key.text)
    assert result.exit_code == 1
    assert "changed: act 2 of wrkspc_" in result.output


def test_a_chain_without_its_lines_is_named(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = export.read_text("utf-8").splitlines(keepends=True)
    chain = next(json.loads(line)["chain"] for line in lines[1:] if json.loads(line).get("chain", "").startswith("sesn_"))
    export.write_text("".join(line for line in lines if chain not in line or "heads" in line), "utf-8")
    result = offline(export, monkeypatch, "--public-key", key.text, "--json")
    report = json.loads(result.output)
    assert [(p["kind"], p["chain"]) for p in report["problems"]] == [("missing", chain)]
    assert report["intact"] is False


def test_acts_in_front_of_their_seals_count_as_not_sealed(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """So nobody gains anything by another order of the lines."""
    first, *lines = export.read_text("utf-8").splitlines(keepends=True)
    outside = [line for line in lines if '"wrkspc_' in line.split(",")[0]]
    export.write_text("".join([first, *(line for line in lines if line not in outside), *outside]), "utf-8")
    report = json.loads(offline(export, monkeypatch, "--public-key", key.text, "--json").output)
    assert report["unsealed"] == report["acts"]


@pytest.mark.parametrize("text", ["", "{}\n", "no JSON\n", '{"assent_audit": 2, "workspace_id": "w"}\n', '{"assent_audit": 1}\n'])
def test_a_file_that_is_no_export_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = tmp_path / "other"
    file.write_text(text)
    result = run("verify", "--file", str(file))
    assert result.exit_code == 1
    assert "line 1" in result.output


@pytest.mark.parametrize("changes", [{"seq": "1"}, {"at": "2026-01-01T00:00:00"}, {"hash": None}, {"head": {"chain": 1}}])
def test_a_malformed_line_is_named(export: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    edit(export, 2, **changes)
    assert "line 3" in offline(export, monkeypatch).output


def test_the_database_is_verified_in_place(stage: Stage, key: PublicKey, intruder: Intruder, tmp_path: Path) -> None:
    session_id = act(stage)
    sealed(stage)
    head = run("head", "--workspace", stage.workspace_id, "--json")
    assert json.loads(head.output)["public_key"] == key.text
    (tmp_path / "head.json").write_text(head.output)
    words = ("verify", "--workspace", stage.workspace_id, "--head", str(tmp_path / "head.json"))
    good = run(*words)
    assert (good.exit_code, good.output.splitlines()[-1]) == (0, "Intact.")
    intruder.do("UPDATE audit SET address = '10.0.0.1' WHERE chain = %s AND seq = 2", session_id)
    bad = run(*words)
    assert bad.exit_code == 1
    assert f"act 2 of {session_id}" in bad.output


def test_a_key_file_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "audit.key"
    output = run("key", str(file)).output
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.delenv("ASSENT_AUDIT_KEY", raising=False)
    monkeypatch.setenv("ASSENT_AUDIT_KEY_FILE", str(file))
    settings.cache_clear()
    assert [key.text for key in seal_key.trusted_keys()] == [output.strip()]
    assert "File exists" in run("key", str(file)).output


def test_keys_may_be_pem_of_openssl() -> None:
    private = (
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
    )
    public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
    key = seal_key.read_private(private)
    assert key.public == seal_key.read_public(public)
    assert key.public.has_signed(b"text", key.sign(b"text"))
    assert not key.public.has_signed(b"another text", key.sign(b"text"))
    for wrong in ("", "AAAA", "no base64!"):
        with pytest.raises(ValueError, match="Ed25519"):
            seal_key.read_private(wrong)


def test_a_key_comes_with_a_file_of_heads_which_only_an_operator_can_replace(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """`key` makes no file of heads for an existing key. `adopt` does, with a reason and after a question."""
    file, heads = tmp_path / "audit.key", tmp_path / "audit.key.heads"
    run("key", str(file))
    assert heads.exists()
    heads.unlink()
    assert run("key", str(file)).exit_code == 1
    assert not heads.exists()
    for name in ("ASSENT_AUDIT_KEY", "ASSENT_AUDIT_HEADS_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ASSENT_AUDIT_KEY_FILE", str(file))
    settings.cache_clear()
    act(stage)
    clock.advance(seals.LATE_SECONDS)
    sweep = seal_sweep.SealSweep()
    sweep.run()
    assert "assent audit adopt" in (alarm.of(stage.workspace_id) or "")
    assert "reason: must have 1 to 1000 characters" in run("adopt", "--yes", "--reason", " ").output
    refused = run("adopt", "--workspace", stage.workspace_id, "--reason", "Key from the vault")
    assert "Have you verified that audit?" in refused.output
    assert not heads.exists()
    adopted = run("adopt", "--yes", "--reason", "Key from the vault")
    assert f"{stage.workspace_id}: the kept head was none" in adopted.output
    sweep.run()
    assert alarm.of(stage.workspace_id) is None


def test_nobody_adopts_an_audit_without_the_key(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")  # a checkout in which `make run` ran has a key
    for name in ("ASSENT_AUDIT_KEY", "ASSENT_AUDIT_HEADS_FILE"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    result = run("adopt", "--yes", "--reason", "Because")
    assert result.exit_code == 1
    assert "this needs the sealer's key: set ASSENT_AUDIT_KEY" in result.output


def test_seals_from_before_the_key_are_excused_by_a_time(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    result = offline(export, monkeypatch, "--public-key", key.text, "--signed-since", "2020-01-01")
    assert result.exit_code == 0, result.output
    assert "Signed since 2020-01-01T00:00:00+00:00, as the verification was told" in result.output
    assert "is not a time" in offline(export, monkeypatch, "--signed-since", "lately").output
