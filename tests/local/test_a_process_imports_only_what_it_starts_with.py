"""What takes long to import is imported when it is used, so that commands and processes start quickly.

The command line leaves out what only servers need. Workers leave out the SDKs of providers, which `turns` loads by itself, and of
MCP servers. Beat and Flower leave out the tasks. No process imports what only others run, nor SQLAlchemy's ORM, which reads and
writes no row, nor what reads an archive outside of the database.
"""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from workers.__main__ import commands
from workers.celery import app

COMMANDS = """
from importlib import import_module
from api.cli.main import ELSEWHERE
for name in ELSEWHERE.values():
    import_module(name)
"""
WORKER = """
from workers.__main__ import commands
commands()
from workers.celery import app
app.loader.import_default_modules()
"""
FLOWER = """
import os
os.environ["FLOWER_BASIC_AUTH"], os.environ["ASSENT_PROBE_FOLDER"] = "name:password", {folder!r}
import deploy.flowerconfig
from workers.celery import app
app.loader.import_default_modules()
"""
WEB = """
import gunicorn.app.wsgiapp
import api.serving, workers.enqueue
from api import _blueprints, desk, signing_in
_blueprints()
"""
SDKS = {"anthropic", "openai", "mcp"}
SERVERS = {"celery", "flask", "gevent", "psycopg", "sqlalchemy"}
OF_OTHERS = {"alembic", "flower", "fsspec", "honcho", "prompt_toolkit", "sqlalchemy.orm", "tornado"}


def imports(program: str) -> set[str]:
    """The modules that a program imports."""
    program += "import json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    return set(json.loads(done.stdout))


def test_no_command_imports_what_it_may_not_need() -> None:
    modules = imports(COMMANDS)
    assert "click" in modules
    assert modules & (SDKS | SERVERS) == set()


def test_no_worker_imports_what_it_may_not_need() -> None:
    modules = imports(WORKER)
    assert {"celery", "workers.turn", "workers.tool"} <= modules
    assert modules & (SDKS | OF_OTHERS | {"flask", "gunicorn", "werkzeug"}) == set()


def test_beat_names_tasks_and_loads_none() -> None:
    tasks = app.conf.include
    try:
        for command, loads in (("worker", True), ("beat", False)):
            assert CliRunner().invoke(commands(), [command, "--help"]).exit_code == 0
            assert ("workers.sweeps.dispatching" in app.conf.include) is loads
    finally:
        app.conf.include = tasks


def test_flower_loads_no_tasks(tmp_path: Path) -> None:
    modules = imports(FLOWER.format(folder=str(tmp_path)))
    assert {"flower", "workers.celery"} <= modules
    assert modules & {"workers.turn", "workers.tool"} == set()


def test_the_api_imports_no_worker_and_no_model_s_sdk() -> None:
    modules = imports(WEB)
    assert {"flask", "api.v1.sessions.routes"} <= modules
    assert modules & (SDKS | OF_OTHERS | {"celery.bin.base", "httpx2", "workers.turn", "workers.tool"}) == set()
