"""The outcome of a task in words, for operators who watch Flower: statuses, counts, and names of tools. No contents, no secrets.

A task returns its words: Flower shows SUCCESS. Or it raises `Failed` or Celery's `Retry`: Flower shows FAILURE or RETRY. Celery
neither repeats the task nor logs a traceback: the row says what happens next.
"""

import re
from collections.abc import Iterable
from itertools import groupby

from celery.exceptions import Retry

LONGEST = 200
"""Most characters of an outcome."""
_PLAIN = re.compile(r"[A-Za-z0-9_.: -]{1,80}", re.ASCII)

UNREADABLE = "left for later: the row is gone, or an error that the log names"
"""The outcome of a claim that raised an error."""
NOT_CLAIMED = "nothing to do"
"""The outcome of a late or doubled hint, and of one whose row may not begin now."""
BUSY = "left for later: this process is busy"
LOST = "lost its lease: the row was taken back or has ended"


class Failed(Exception):
    """The work ended in an error, which its row records. The message is the task's outcome."""


Outcome = str | Exception
"""Words of a success, `Failed`, or Celery's `Retry`."""


def conclude(outcome: Outcome) -> str:
    """Return the words of a success, or raise the exception. Call this outside of `except`: else the other error is chained."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome[:LONGEST]


def failed(reason: str) -> Failed:
    """Return the outcome of work that has ended in an error."""
    return Failed(f"failed: {reason}"[:LONGEST])


def tries_again(reason: str) -> Exception:
    """Return the outcome of an attempt that failed and whose row is queued again."""
    words = f"tries again: {reason}"[:LONGEST]
    return Retry(words, exc=Failed(words))  # type: ignore[no-any-return]


def plain(text: object) -> str:
    """Return a short word that a provider or a model chose, or `other` if it could be anything else than a word."""
    return text if isinstance(text, str) and _PLAIN.fullmatch(text) else "other"


def counted(pairs: Iterable[tuple[str, str]]) -> str:
    """Return statuses and names as one text: `asked 2: bash, edit; queued 1: read`. An empty name is only counted."""
    texts = []
    for status, group in groupby(sorted(pairs), key=lambda pair: pair[0]):
        names = [name for _, name in group]
        shown = ", ".join(dict.fromkeys(filter(None, names)))
        texts.append(f"{status} {len(names)}" + (f": {shown}" if shown else ""))
    return "; ".join(texts)
