"""A database that is unreachable, too old or not migrated, or whose roles are too strong, is one line that says what to do."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import warm
from alembic.script import ScriptDirectory
from click.testing import CliRunner
from own_database import TEMPLATE, DatabaseUrls, make_url
from psycopg import sql

from api.cli.main import main
from deploy.checks import check_owner, check_running_role
from deploy.folder import CannotStart, free_port
from deploy.local import up
from deploy.migrate import check_current, migrate
from deploy.supervisor import Supervisor
from models.database import revisions
from models.database.roles import Facts, check_start, too_old, too_strong
from models.settings import settings

RIGHT = Facts(version=18, role="assent_app", superuser=False, bypasses=False, owns=False, unlimited=False)


@pytest.fixture
def bare_database(database_urls: DatabaseUrls) -> Iterator[DatabaseUrls]:
    """A database of the owner without any table."""
    with new_database(database_urls, "template0") as urls:
        yield urls


@pytest.fixture
def migrated_database(database_urls: DatabaseUrls) -> Iterator[DatabaseUrls]:
    """A database of the owner with the schema of this release."""
    with new_database(database_urls, TEMPLATE) as urls:
        yield urls


@contextmanager
def new_database(urls: DatabaseUrls, template: str) -> Iterator[DatabaseUrls]:
    """Create a database from a template, and drop it at the end."""
    name = make_url(urls.admin, "").rpartition("/")[2] + "assent_bare_" + urls.app.rpartition("_")[2]
    identifier = sql.Identifier(name)
    create = sql.SQL("CREATE DATABASE {} OWNER assent_owner TEMPLATE {}").format(identifier, sql.Identifier(template))
    with psycopg.connect(urls.admin, autocommit=True) as db:
        db.execute(create)
        yield DatabaseUrls(*(make_url(url, name) for url in vars(urls).values()))
        db.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))


def refusal(variable: str, url: str) -> str:
    """The message, of one line, that refuses the role of this URL."""
    with pytest.raises(CannotStart) as refused:
        check_running_role(variable, url)
    message = str(refused.value)
    assert "\n" not in message
    return message


def known() -> set[str]:
    """The revisions of this release, by the names of their files."""
    return {file.name[:4] for file in revisions.SCRIPTS.glob("versions/[0-9]*.py")}


def add_migration(folder: Path, patch: pytest.MonkeyPatch, *, serves: Sequence[str] = (), does: str = "pass") -> None:
    """Give the release one more migration, 9999."""
    head = max(known())
    scripts = shutil.copytree(revisions.SCRIPTS, folder / "migrations")
    script = f'revision = "9999"\ndown_revision = "{head}"\nserves = {serves!r}\n\n\ndef upgrade() -> None:\n    {does}\n'
    (scripts / "versions" / "9999_next.py").write_text(script)
    patch.setattr(revisions, "SCRIPTS", scripts)


def test_the_roles_of_roles_sql_are_right(database_urls: DatabaseUrls) -> None:
    check_running_role("DATABASE_URL", database_urls.app)
    check_running_role("DATABASE_SYSTEM_URL", database_urls.system)
    check_owner("DATABASE_OWNER_URL", database_urls.owner)


def test_an_unreachable_database_is_named_without_its_password() -> None:
    message = refusal("DATABASE_URL", f"postgresql://assent_app:hush@127.0.0.1:{free_port()}/assent")
    assert message.startswith("DATABASE_URL: the database does not respond at 127.0.0.1:")
    assert "hush" not in message


def test_a_url_that_cannot_be_read_is_one_clear_line() -> None:
    assert "DATABASE_URL" in refusal("DATABASE_URL", "postgresql://[oops")


def test_a_wrong_password_is_one_clear_line(database_urls: DatabaseUrls) -> None:
    url = database_urls.app.replace(database_urls.app.split(":")[2].split("@")[0], "wrong")
    assert "password authentication failed" in refusal("DATABASE_URL", url)


def test_a_superuser_is_refused(database_urls: DatabaseUrls) -> None:
    message = refusal("DATABASE_URL", database_urls.admin)
    assert "the role postgres is a superuser" in message
    assert "deploy/roles.sql" in message


def test_the_owner_is_refused_as_a_running_role(database_urls: DatabaseUrls) -> None:
    assert "owns the database or its tables" in refusal("DATABASE_SYSTEM_URL", database_urls.owner)


def test_no_process_starts_with_a_role_that_is_too_strong(database_urls: DatabaseUrls, monkeypatch: pytest.MonkeyPatch) -> None:
    check_start("sweeps")
    monkeypatch.setenv("DATABASE_SYSTEM_URL", database_urls.admin)
    settings.cache_clear()
    with pytest.raises(SystemExit, match="assent: DATABASE_SYSTEM_URL: the role postgres is a superuser"):
        check_start("sweeps")


def test_a_role_that_bypasses_policies_is_refused() -> None:
    strong = Facts(version=18, role="assent_app", superuser=False, bypasses=True, owns=False, unlimited=False)
    assert "BYPASSRLS" in (too_strong(strong) or "")
    assert too_strong(RIGHT) is None


def test_a_server_older_than_15_is_refused() -> None:
    old = Facts(version=14, role="assent_app", superuser=False, bypasses=False, owns=False, unlimited=False)
    assert too_old(old) == "this is PostgreSQL 14, which is too old: use 15 or newer"
    assert too_old(RIGHT) is None


def test_a_database_without_a_schema_is_refused_until_it_is_migrated(bare_database: DatabaseUrls) -> None:
    assert "no schema yet" in (check_current(bare_database.app) or "")
    migrate(bare_database.owner)
    assert check_current(bare_database.app) is None
    assert check_current(bare_database.system) is None


def test_an_older_schema_is_refused(migrated_database: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release has one migration more than the database."""
    add_migration(tmp_path, monkeypatch)
    assert "older than this release" in (check_current(migrated_database.app) or "")


@pytest.mark.parametrize("serves", [True, False])
def test_a_newer_schema_is_accepted_if_its_release_says_that_it_serves_this_one(
    migrated_database: DatabaseUrls, tmp_path: Path, serves: bool
) -> None:
    """During a deployment the previous release runs beside the next one's schema."""
    with pytest.MonkeyPatch.context() as next_release:
        add_migration(tmp_path, next_release, serves=[max(known())] if serves else [])
        migrate(migrated_database.owner)
        assert check_current(migrated_database.app) is None
    fault = check_current(migrated_database.app)
    if serves:
        assert fault is None
        migrate(migrated_database.owner)  # changes nothing
        assert check_current(migrated_database.app) is None
    else:
        assert "has the revision 9999, which this release" in (fault or "")


def test_a_schema_that_this_release_does_not_know_is_one_clear_line(
    migrated_database: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(migrated_database.owner, autocommit=True) as db:
        db.execute("UPDATE alembic_version SET version_num = '9017'")
    monkeypatch.setenv("DATABASE_OWNER_URL", migrated_database.owner)
    result = CliRunner().invoke(main, ["migrate", "--data-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: the database's schema has the revision 9017, which this release (revision ")
    assert result.output.endswith("start the release that migrated this database, or restore a backup from before\n")
    assert result.output.count("\n") == 1


def test_a_migration_that_fails_is_one_clear_line(
    migrated_database: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_migration(tmp_path, monkeypatch, does="from alembic import op\n\n    op.execute('SELECT 1 / 0')")
    monkeypatch.setenv("DATABASE_OWNER_URL", migrated_database.owner)
    result = CliRunner().invoke(main, ["migrate", "--data-dir", str(tmp_path)])
    assert (result.exit_code, result.output) == (
        1,
        "Error: the migration failed, and the schema is as before: division by zero\n",
    )


def test_an_unreachable_database_is_one_clear_line_of_the_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_OWNER_URL", f"postgresql://assent_owner:hush@127.0.0.1:{free_port()}/assent")
    result = CliRunner().invoke(main, ["migrate", "--data-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: DATABASE_OWNER_URL: the database does not respond at 127.0.0.1:")
    assert result.output.count("\n") == 1
    assert "hush" not in result.output


def test_every_migration_is_known_by_its_file_name() -> None:
    scripts = ScriptDirectory(str(revisions.SCRIPTS))
    assert known() == {script.revision for script in scripts.walk_revisions()}
    assert scripts.get_heads() == [max(known())]


@pytest.mark.parametrize(
    ("roles", "line"),
    [
        ({"DATABASE_URL": "admin", "DATABASE_SYSTEM_URL": "system"}, "DATABASE_URL: the role postgres is a superuser"),
        ({"DATABASE_URL": "app", "DATABASE_SYSTEM_URL": "owner"}, "DATABASE_SYSTEM_URL: the role assent_owner owns"),
    ],
)
def test_assent_up_refuses_a_role_that_is_too_strong(
    database_urls: DatabaseUrls,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    roles: dict[str, str],
    line: str,
) -> None:
    monkeypatch.setattr(Supervisor, "listen", lambda _: None)
    monkeypatch.setenv("ASSENT_SHELL", "bare")
    monkeypatch.delenv("DATABASE_OWNER_URL")
    for name, role in roles.items():
        monkeypatch.setenv(name, getattr(database_urls, role))
    assert up(free_port(), tmp_path / "data", tmp_path / "no-procfile") == 1  # no Procfile is read before the refusal
    _, errors = capsys.readouterr()
    assert line in errors
    assert errors.count("\n") == 1


def test_assent_up_ends_with_one_line_that_names_the_missing_variable(
    database_urls: DatabaseUrls, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABASE_SYSTEM_URL", "DATABASE_OWNER_URL"):
        monkeypatch.delenv(name)
    done = warm.run("-m", "api.cli.main", "up", "--port", str(free_port()), "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert "DATABASE_SYSTEM_URL is not" in done.stderr
    assert done.stderr.count("\n") == 1
