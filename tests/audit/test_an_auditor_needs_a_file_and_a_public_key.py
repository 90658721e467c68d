"""`assent audit`: what was exported is verified anywhere, without the server, the database or the private key."""

import json
from pathlib import Path
from typing import Any

import pytest
from audit.tampering import Intruder, act, sealed
from click.testing import CliRunner, Result
from rows.stage import Stage

from api.cli.main import main
from models.audit import seal_key, seal_sweep
from models.audit.seal_key import PublicKey


def run(*words: str) -> Result:
    """One command."""
    return CliRunner().invoke(main, ["audit", *words])


@pytest.fixture
def export(stage: Stage, key: PublicKey, tmp_path: Path) -> Path:
    """An export of two sessions, one of them deleted, and the acts after the last seal."""
    from models import flow
    from models.database.transactions import transaction

    act(stage)
    gone = act(stage)
    sealed(stage)
    with transaction(stage.workspace_id) as db:
        flow.delete(db, flow.lock(db, gone), stage.principal)
    sealed(stage)
    stage.session()
    file = tmp_path / "export.jsonl"
    result = run("export", "--workspace", stage.workspace_id, "--output", str(file))
    assert result.exit_code == 0, result.output
    return file


def offline(file: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> Result:
    """Verify a file where there is nothing else."""
    from models.settings import settings

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


def test_without_a_public_key_it_is_said_that_signatures_were_not_checked(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = offline(export, monkeypatch)
    assert result.exit_code == 0, result.output
    assert "Signatures were not checked" in result.output


def test_another_s_public_key_is_not_enough(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = seal_key.read_private(seal_key.make()).public
    result = offline(export, monkeypatch, "--public-key", other.text)
    assert result.exit_code == 1
    assert "not known here" in result.output


def test_a_changed_line_is_named(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(export, 2, principal="person:nobody")
    result = offline(export, monkeypatch, "--public-key", key.text)
    assert result.exit_code == 1
    assert "changed: act 2 of wrkspc_" in result.output


def test_lines_that_are_left_out_are_named(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = export.read_text("utf-8").splitlines(keepends=True)
    chain = next(json.loads(line)["chain"] for line in lines[1:] if json.loads(line).get("chain", "").startswith("sesn_"))
    export.write_text("".join(line for line in lines if chain not in line or "heads" in line), "utf-8")
    result = offline(export, monkeypatch, "--public-key", key.text, "--json")
    report = json.loads(result.output)
    assert [(p["kind"], p["chain"]) for p in report["problems"]] == [("missing", chain)]
    assert report["intact"] is False


def test_seals_that_come_last_vouch_for_nothing(export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever orders the lines otherwise gains only that they count as not sealed."""
    first, *lines = export.read_text("utf-8").splitlines(keepends=True)
    outside = [line for line in lines if '"wrkspc_' in line.split(",")[0]]
    export.write_text("".join([first, *(line for line in lines if line not in outside), *outside]), "utf-8")
    report = json.loads(offline(export, monkeypatch, "--public-key", key.text, "--json").output)
    assert report["unsealed"] == report["acts"]


@pytest.mark.parametrize("text", ["", "{}\n", "no JSON\n", '{"assent_audit": 2, "workspace_id": "w"}\n', '{"assent_audit": 1}\n'])
def test_what_is_no_export_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = tmp_path / "other"
    file.write_text(text)
    result = run("verify", "--file", str(file))
    assert result.exit_code == 1
    assert "line 1" in result.output


@pytest.mark.parametrize("changes", [{"seq": "1"}, {"at": "2026-01-01T00:00:00"}, {"hash": None}, {"head": {"chain": 1}}])
def test_a_line_that_is_none_is_named(export: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
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


def test_a_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from models.settings import settings

    file = tmp_path / "audit.key"
    made = run("key", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    monkeypatch.delenv("ASSENT_AUDIT_KEY", raising=False)
    monkeypatch.setenv("ASSENT_AUDIT_KEY_FILE", str(file))
    settings.cache_clear()
    assert [key.text for key in seal_key.known()] == [made.output.strip()]
    assert "File exists" in run("key", str(file)).output


def test_keys_may_be_pem_as_openssl_writes_them() -> None:
    private = (
        "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
    )
    public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
    key = seal_key.read_private(private)
    assert key.public == seal_key.read_public(public)
    assert key.public.signed(b"said", key.sign(b"said"))
    assert not key.public.signed(b"said otherwise", key.sign(b"said"))
    for wrong in ("", "AAAA", "no base64!"):
        with pytest.raises(ValueError, match="Ed25519"):
            seal_key.read_private(wrong)


def test_a_key_comes_with_a_file_for_the_sealer_which_only_an_operator_makes_anew(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that makes a key makes no file of heads for a key that is there; `trust-heads` does, after a question."""
    from models.audit import signer
    from models.settings import settings

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
    sweep = seal_sweep.Sweep()
    sweep.run()
    assert "trust-heads" in (signer.alarm(stage.workspace_id) or "")
    refused = run("trust-heads", "--workspace", stage.workspace_id)
    assert "Have you verified that audit?" in refused.output
    assert not heads.exists()
    trusted = run("trust-heads", "--yes")
    assert f"{stage.workspace_id}: the kept head was none" in trusted.output
    sweep.run()
    assert signer.alarm(stage.workspace_id) is None


def test_what_was_unsigned_before_the_key_is_excused_by_its_time(
    export: Path, key: PublicKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = offline(export, monkeypatch, "--public-key", key.text, "--signed-since", "2020-01-01")
    assert result.exit_code == 0, result.output
    assert "Signed since 2020-01-01T00:00:00+00:00, as the verification was told" in result.output
    assert "is not a time" in offline(export, monkeypatch, "--signed-since", "lately").output
