"""Command lines and environments of the leash's programs: they start quickly, and read nothing of this environment."""

import os
import sys
from pathlib import Path

_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Some Pythons, such as GitHub's, need these to find their own library."""
# The folder comes last on the path, so that no file there hides a module of the standard library. The interpreter's normal exit
# takes as long as its start.
_START = (
    "import os, sys; sys.path.append({folder!r})\n"
    "try:\n from programs import {name}; {name}.main()\n"
    "except OSError: os._exit(1)\n"
    "finally: os._exit(0)"
)


def program(name: str, *words: str) -> list[str]:
    """Return the command line of a program of `programs`, with its arguments. Its exit code is 1 after an OSError, else 0."""
    return [sys.executable, "-I", "-S", "-c", _START.format(folder=str(Path(__file__).parent), name=name), *words]


def environment() -> dict[str, str]:
    """Return the whole environment of such a program."""
    return {name: os.environ[name] for name in _LOADER if name in os.environ}
