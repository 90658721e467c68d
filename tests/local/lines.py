"""The lines of the Procfile as commands."""

import subprocess
import sys

from honcho.environ import parse_procfile

from deploy.procfile import ROOT

LINES: dict[str, str] = parse_procfile((ROOT / "Procfile").read_text()).processes
SHOW = "".join(f"{program}() {{ printf '%s\\n' {program} \"$@\"; }}; " for program in ("python", "celery", "gunicorn"))


def words(name: str, **env: str) -> list[str]:
    """The program of a line and its arguments, as the shell reads them with these variables."""
    done = subprocess.run(["/bin/sh", "-c", SHOW + LINES[name]], env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def command(name: str, **env: str) -> list[str]:
    """The words of a line, with the Python of the tests, so that they can run in a fork."""
    program, *arguments = words(name, **env)
    assert program == "python"
    return [sys.executable, *arguments]
