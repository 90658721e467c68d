"""Counts the messages to Postgres and the statements in them by their verb, in each process that imports this module.

A verb is the outermost function of `models` on the stack, or of the API or a task where `models` is not on it.
"""

import contextlib
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from models.database.exchange import Connection, Rows, Statement

FOLDER = "BENCH_COUNTS"
"""The environment variable with the folder of the counts. It has a file per process, with a line per message."""
_PAUSE = "pause"
"""A file in the folder while nothing is counted."""
_ROOT = f"{Path(__file__).parents[2]}{os.sep}"
_files: dict[int, int] = {}
_exchange = Connection.exchange


@dataclass
class Count:
    """Of one verb."""

    commits: int = 0
    messages: int = 0
    statements: int = 0


def read(folder: Path, without: Collection[int] = ()) -> tuple[int, int]:
    """Return the messages and the statements of all processes so far, without those of some."""
    counts = by_verb(folder, without).values()
    return sum(count.messages for count in counts), sum(count.statements for count in counts)


@contextlib.contextmanager
def pause(folder: Path) -> Iterator[None]:
    """Have no process count while the block runs: counting takes CPU time of its own, 1 to 2 % of a cycle's."""
    (folder / _PAUSE).touch()
    try:
        yield
    finally:
        (folder / _PAUSE).unlink()


def by_verb(folder: Path, without: Collection[int] = ()) -> dict[str, Count]:
    """Return the counts of all processes so far, without those of some."""
    counts: dict[str, Count] = {}
    for file in folder.iterdir():
        if file.name == _PAUSE or int(file.name) in without:
            continue
        for line in file.read_text().splitlines():
            verb, statements, commits = line.split()
            count = counts.setdefault(verb, Count())
            count.commits += int(commits)
            count.messages += 1
            count.statements += int(statements)
    return counts


def _counted(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
    if os.path.exists(os.path.join(os.environ[FOLDER], _PAUSE)):  # noqa: PTH110, PTH118 - a Path takes five times as long
        return _exchange(connection, statements)
    ends = statements[-1].sql == "COMMIT" or not (connection.in_transaction or statements[0].sql == "BEGIN")
    os.write(_own(), f"{_verb(sys._getframe(1))} {len(statements)} {ends:d}\n".encode())
    return _exchange(connection, statements)


def _verb(frame: FrameType | None) -> str:
    verb = other = "other"
    while frame is not None:
        place = frame.f_code.co_filename
        if place.startswith(_ROOT):
            name = f"{place.removeprefix(_ROOT).removesuffix('.py').replace(os.sep, '.')}.{frame.f_code.co_name}"
            if name.startswith("models.") and not name.startswith("models.database."):
                verb = name
            elif name.startswith(("api.", "workers.")) and not name.startswith(("api.door.", "workers.celery.")):
                other = name
        frame = frame.f_back
    return other if verb == "other" else verb


def _own() -> int:
    """Return the file of this process. Others can read it at any time."""
    if os.getpid() not in _files:
        _files[os.getpid()] = os.open(Path(os.environ[FOLDER], str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return _files[os.getpid()]


if FOLDER in os.environ:
    Connection.exchange = _counted  # type: ignore[method-assign]
