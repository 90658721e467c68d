"""Counts the messages to Postgres and the statements in them, in each process that imports this module."""

import mmap
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from models.database.exchange import Connection, Rows, Statement

FOLDER = "BENCH_COUNTS"
"""The environment variable with the folder of the counts. It has a file per process."""
_SIZE = 16
_own: dict[int, memoryview] = {}
_exchange = Connection.exchange


def read(folder: Path, without: Collection[int] = ()) -> tuple[int, int]:
    """Return the messages and the statements of all processes so far, without those of some."""
    counts = [memoryview(file.read_bytes()).cast("Q") for file in folder.iterdir() if int(file.name) not in without]
    return sum(messages for messages, _ in counts), sum(statements for _, statements in counts)


def _counted(connection: Connection, statements: Sequence[Statement]) -> list[Rows]:
    counts = _of_process()
    counts[0] += 1
    counts[1] += len(statements)
    return _exchange(connection, statements)


def _of_process() -> memoryview:
    """Return the two counts of this process. They are in a file that others can read at any time."""
    if os.getpid() not in _own:
        file = Path(os.environ[FOLDER], str(os.getpid()))
        file.write_bytes(bytes(_SIZE))
        with file.open("r+b") as opened:
            _own[os.getpid()] = memoryview(mmap.mmap(opened.fileno(), _SIZE)).cast("Q")
    return _own[os.getpid()]


if FOLDER in os.environ:
    Connection.exchange = _counted  # type: ignore[method-assign]
