"""`assent upgrade check` says what an upgrade takes, and changes nothing."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result
from own_database import DatabaseUrls, make_url
from psycopg import sql

from api.cli.main import main
from models.database import revisions


def check(*options: str) -> Result:
    """Call the command."""
    return CliRunner().invoke(main, ["upgrade", "check", *options])


def head() -> str:
    """The newest revision of this release."""
    return max(file.name[:4] for file in revisions.SCRIPTS.glob("versions/[0-9]*.py"))


def add_migration(folder: Path, patch: pytest.MonkeyPatch, *, serves: Sequence[str]) -> None:
    """Give the release one more migration, 9999."""
    script = f'"""Adds nothing."""\nrevision = "9999"\ndown_revision = "{head()}"\nserves = {serves!r}\ndef upgrade(): pass\n'
    scripts = shutil.copytree(revisions.SCRIPTS, folder / "migrations")
    (scripts / "versions" / "9999_next.py").write_text(script)
    patch.setattr(revisions, "SCRIPTS", scripts)


@pytest.fixture
def empty(database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment names a database without any table."""
    name = "assent_upgrade_" + database_urls.app.rpartition("_")[2]
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute(sql.SQL("CREATE DATABASE {} OWNER assent_owner TEMPLATE template0").format(sql.Identifier(name)))
        monkeypatch.setenv("DATABASE_OWNER_URL", make_url(database_urls.owner, name))
        yield
        db.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_nothing_is_to_do_beside_the_own_schema(database_urls: DatabaseUrls) -> None:
    response = check()
    assert response.exit_code == 0, response.output
    assert "Nothing to migrate" in response.output


def test_a_schema_that_serves_the_running_release_needs_no_downtime(
    database_urls: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = head()
    add_migration(tmp_path, monkeypatch, serves=(present,))
    body = json.loads(check("--json").stdout)
    assert (body["present"], body["target"], body["downtime"], body["needs_backup"]) == (present, "9999", False, True)
    assert body["migrations"] == ["9999: Adds nothing."]
    assert "assent backup make" in check().output
    with psycopg.connect(database_urls.owner) as db:
        assert db.execute("SELECT version_num FROM alembic_version").fetchone() == (present,), "nothing is changed"


def test_a_schema_that_does_not_serve_it_needs_a_downtime(
    database_urls: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_migration(tmp_path, monkeypatch, serves=())
    assert json.loads(check("--json").stdout)["downtime"] is True
    assert "Stop all processes" in check().output


def test_an_empty_database_needs_no_backup(empty: None) -> None:
    body = json.loads(check("--json").stdout)
    assert (body["present"], body["downtime"], body["needs_backup"]) == ("", False, False)
    assert body["migrations"]


def test_a_transaction_that_would_block_the_migration_is_named(
    database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.upgrading.LONG_SECONDS", 0)
    with psycopg.connect(database_urls.owner) as db:
        db.execute("SELECT 1")
        response = check()
    assert response.exit_code == 1
    assert "is open since" in response.output


def test_a_schema_of_another_line_is_refused_in_one_line(empty: None) -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as db:
        db.execute("CREATE TABLE alembic_version AS SELECT '7777' AS version_num")
    response = check()
    assert response.exit_code == 1
    assert "7777" in response.output
    assert "does not know" in response.output
