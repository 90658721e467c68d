"""A database, a Redis or a model that the environment names is used, and nothing is embedded in its place."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from crashes.processes import wait_for
from own_database import DatabaseUrls

from deploy.folder import Folder, free_port
from deploy.local import Local
from deploy.probes import Workers
from deploy.procfile import with_own_interpreter
from deploy.supervisor import shell
from models.settings.variables import PROCESSES, environment_of


@pytest.fixture
def named_servers(clean_database: DatabaseUrls, clean_redis: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment names a database, a Redis and a model. Undoes what the start adds to this process's environment."""
    variables = {
        "DATABASE_URL": clean_database.app,
        "DATABASE_SYSTEM_URL": clean_database.system,
        "REDIS_URL": clean_redis,
        "ANTHROPIC_API_KEY": "sk-ant-real",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{free_port()}",
        "ASSENT_SHELL": "bare",
    }
    before = dict(os.environ)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    yield variables
    monkeypatch.undo()
    os.environ.clear()
    os.environ.update(before)


def test_named_servers_and_a_model_embed_nothing_and_get_no_sample_session(
    named_servers: dict[str, str], clean_database: DatabaseUrls, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sample session would cost the owner of a real key money. The processes are placeholders that count as ready."""
    procfile = tmp_path / "Procfile"
    procfile.write_text("".join(f"{name}: sleep 1000\n" for name in PROCESSES))
    monkeypatch.setattr("deploy.local.responds", lambda *_: True)
    monkeypatch.setattr(Workers, "respond", lambda _: True)
    local = Local(folder, free_port(), procfile)
    try:
        assert local._start() is False
        wait_for("a process of each name runs", lambda: set(local.supervisor.pids) >= set(PROCESSES))
        assert set(local.supervisor.pids) == set(PROCESSES)
        assert {name: local.env[name] for name in named_servers} == named_servers
    finally:
        local.supervisor.hurry.set()
        local.supervisor.stop()
    with psycopg.connect(clean_database.admin) as db:
        assert db.execute("SELECT count(*) FROM workspace WHERE name = 'default'").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM session").fetchone() == (0,)


def test_paths_of_settings_count_from_the_folder_where_a_person_starts_assent(
    named_servers: dict[str, str], folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes themselves run in the folder of Assent's packages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSENT_MCP_CONFIG", "mcp.json")
    monkeypatch.setenv("ASSENT_AUDIT_KEY_FILE", "/etc/assent/audit.key")
    monkeypatch.setenv("ASSENT_TOOLSET_PATH", "tools:/srv/tools")
    variables = environment_of("tools", Local(folder, free_port(), tmp_path).env)
    assert variables["ASSENT_MCP_CONFIG"] == f"{tmp_path}/mcp.json"
    assert variables["ASSENT_TOOLSET_PATH"] == f"{tmp_path}/tools:/srv/tools"
    assert variables["ASSENT_TOOLSET_FOLDER"] == str(tmp_path)
    assert Local(folder, free_port(), tmp_path).env["ASSENT_AUDIT_KEY_FILE"] == "/etc/assent/audit.key"
    monkeypatch.delenv("ASSENT_TOOLSET_PATH")
    assert Local(folder, free_port(), tmp_path).env["ASSENT_TOOLSET_PATH"] == str(tmp_path)


def test_lines_of_the_procfile_run_by_the_python_of_assent_up() -> None:
    assert with_own_interpreter("python -m workers worker") == f"{shell(sys.executable)} -m workers worker"
    assert with_own_interpreter("sleep 1") == "sleep 1"
