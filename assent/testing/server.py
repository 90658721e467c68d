"""The command of the server, in an interpreter that has it."""

import os
import subprocess
import sys
from functools import cache

VARIABLE = "ASSENT_SERVER_PYTHON"
"""The environment variable that names the interpreter with the server."""


class ServerMissing(RuntimeError):
    """No interpreter has the server's distribution. The message says what to install, and where."""


def python() -> str:
    """Return the interpreter that has the server, or should have it."""
    return os.environ.get(VARIABLE) or sys.executable


def command(*words: str) -> list[str]:
    """Return a command of the server. Raises ServerMissing."""
    _require(python())
    return [python(), "-m", "assent_server", *words]


@cache
def _require(interpreter: str) -> None:
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('assent_server') is None)"
    try:
        found = subprocess.run([interpreter, "-c", look], check=False).returncode == 0  # noqa: S603 - the named interpreter
    except OSError:
        found = False
    if not found:
        raise ServerMissing(
            f"assent.testing needs the server, which {interpreter} does not have: install 'assent-server[local]' there, or into an "
            f"environment of its own whose Python the environment variable {VARIABLE} names"
        )
