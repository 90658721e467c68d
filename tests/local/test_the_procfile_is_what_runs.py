"""The Procfile names the processes, and each line runs by `exec` with nothing but environment variables."""

import subprocess
import sys
from pathlib import Path

import pytest
from honcho.environ import parse_procfile

from deploy.procfile import ROOT
from models.settings.variables import PROCESSES

LINES = parse_procfile((ROOT / "Procfile").read_text()).processes
SHOW = "".join(f"{program}() {{ printf '%s\\n' {program} \"$@\"; }}; " for program in ("python", "celery", "gunicorn"))


def words(name: str, **env: str) -> list[str]:
    """The program of a line and its arguments."""
    done = subprocess.run(["/bin/sh", "-c", SHOW + LINES[name]], env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_there_is_one_procfile() -> None:
    assert (ROOT / "deploy/Procfile").resolve() == ROOT / "Procfile"


def test_the_procfile_names_all_processes() -> None:
    assert list(LINES) == list(PROCESSES)


@pytest.mark.parametrize("name", LINES)
def test_every_line_is_one_program(name: str) -> None:
    assert not {"|", ";", "&", "<", ">"} & set(LINES[name].replace('"api:create_app()"', ""))


def test_everything_listens_on_loopback_unless_told_otherwise() -> None:
    assert "127.0.0.1:8000" in words("web")
    assert "0.0.0.0:80" in words("web", HOST="0.0.0.0", PORT="80")
    assert "--address=127.0.0.1" in words("flower")


def test_flower_does_not_start_without_a_password_and_never_shows_it() -> None:
    line = ["/bin/sh", "-c", f"exec {LINES['flower']}"]
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(line, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "FLOWER_BASIC_AUTH is not set" in done.stderr
    assert "hush" not in " ".join(words("flower", FLOWER_BASIC_AUTH="name:hush"))


def test_every_queue_has_a_worker() -> None:
    named = [words(name)[words(name).index("--queues") + 1] for name in ("turns", "tools", "sweeps", "deliver")]
    queues = {queue for names in named for queue in names.split(",")}
    assert queues == {"turns", "sweeps", "tools", "deliver"}
