"""Searches files for a regular expression: a program of its own, since no thread can stop Python's `re`.

Run by path under the keeper. Descriptor ORDER_FD holds marshal of `(pattern, path to show, descriptor to search)`.
Prints `path:line:text`; exits with 0, or with 2 and a sentence on standard error.
"""

import marshal
import os
import re
import stat
import sys
from collections.abc import Iterator

ORDER_FD = 249
FILES = 50_000
DEEP = 200
MATCHES = 1_000
LINE_BYTES = 2_000
SNIFF_BYTES = 8_192
PASSED_OVER = (".git", "node_modules")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def main() -> int:
    with os.fdopen(ORDER_FD, "rb") as order:
        pattern, above, start = marshal.load(order)  # noqa: S302 - from the worker, by way of the keeper
    try:
        wanted = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        print(f"pattern: {error}", file=sys.stderr)  # noqa: T201
        return 2
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    matches, long_lines = 0, 0
    for shown, fd in files_below(above, start):
        for number, line, whole in lines(fd):
            long_lines += not whole
            if wanted.search(line):
                matches += 1
                if matches > MATCHES:
                    print(f"[... more than {MATCHES} matches; narrow the pattern or the path ...]")  # noqa: T201
                    return 0
                print(f"{shown}:{number}:{line}", flush=True)  # noqa: T201 - a time limit must not lose what was found
    if long_lines:
        print(f"[... {long_lines} lines were searched only in their first {LINE_BYTES} bytes ...]")  # noqa: T201
    return 0


def files_below(above: str, start: int) -> Iterator[tuple[str, int]]:
    """Path to show and open descriptor of each regular file; the descriptor is closed by who takes it.

    Goes by descriptors from the one that the worker has checked, and through no link.
    """
    if stat.S_ISREG(os.fstat(start).st_mode):
        yield above, start
        return
    count = 0
    for path, folders, names, folder in os.fwalk(".", dir_fd=start):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER) if path.count("/") < DEEP else []
        for name in sorted(names):
            count += 1
            if count > FILES:
                print(f"[... only {FILES} files were searched; give a path ...]")  # noqa: T201
                return
            try:
                fd = os.open(name, _READ, dir_fd=folder)
            except OSError:
                continue
            if stat.S_ISREG(os.fstat(fd).st_mode) and not name.startswith(".assent-"):
                # A name may hold line ends, and must not pass for several.
                yield os.path.normpath(f"{above}/{path}/{name}").replace("\n", "\\n"), fd
            else:
                os.close(fd)


def lines(fd: int) -> Iterator[tuple[int, str, bool]]:
    """Number, beginning and wholeness of each line of a text file; nothing of a binary one."""
    with os.fdopen(fd, "rb") as file:
        if b"\0" in file.peek(SNIFF_BYTES)[:SNIFF_BYTES]:
            return
        number, fresh = 0, True
        while piece := file.readline(LINE_BYTES):
            ended = piece.endswith(b"\n")
            if fresh:
                number += 1
                whole = ended or len(piece) < LINE_BYTES
                yield number, piece.decode(errors="replace").rstrip("\r\n"), whole
            fresh = ended


if __name__ == "__main__":
    sys.exit(main())
