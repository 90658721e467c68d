"""The outcome of a task in words, for operators who watch Flower: statuses, counts, and names of tools. No contents, no secrets.

A task returns its words: Flower shows SUCCESS. Or it raises one of `FAILURES`, or Celery's `Retry`: Flower shows FAILURE or RETRY.
Celery neither repeats the task nor logs a traceback: the row says what happens next.
"""

import logging
import math
import re
import time
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from celery import Task, current_task
from celery.exceptions import Retry

from models.database import metric
from models.database.transactions import ERRORS
from models.operate.failing import LeftForLater

log = logging.getLogger(__name__)

MOST_SECONDS = 45.0
"""Longest time of a sweep that goes on batch by batch. It is below the time between two such sweeps, so these do not pile up."""
LONGEST = 200
"""Most characters of an outcome."""
_PLAIN = re.compile(r"[A-Za-z0-9_.: -]{1,80}", re.ASCII)

NOT_CLAIMED = "nothing to do"
"""The outcome of a late or doubled hint, and of one whose row may not begin now."""
BUSY = "left for later: this process is busy"
LOST = "lost its lease: the row was taken back or has ended"


class Failed(Exception):
    """The work ended in an error, which its row records. The message is the task's outcome."""


FAILURES = (Failed, LeftForLater)
"""The exceptions that a task raises for Flower, for `throws`: Celery then logs one line for each, without a traceback."""


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


def counts_in_words(pairs: Iterable[tuple[str, str]]) -> str:
    """Return statuses and names as one text: `asked 2: bash, edit; queued 1: read`. An empty name is only counted."""
    texts = []
    for status, group in groupby(sorted(pairs), key=lambda pair: pair[0]):
        names = [name for _, name in group]
        names_in_words = ", ".join(dict.fromkeys(filter(None, names)))
        texts.append(f"{status} {len(names)}" + (f": {names_in_words}" if names_in_words else ""))
    return "; ".join(texts)


Ends = list[tuple[str, str]]
"""The end of each row of a task, and a word about it."""
SENT, TRIES_AGAIN, FAILED = "sent", "tries again", "failed"
"""Ends of a row."""


def of_several(ends: Ends) -> Outcome:
    """Return the outcome of a task with several rows: a failure if a row failed for good, else a retry if one is queued again."""
    words, kinds = counts_in_words(ends)[:LONGEST], {end for end, _ in ends}
    if FAILED in kinds:
        return Failed(words)
    return Retry(words, exc=Failed(words)) if TRIES_AGAIN in kinds else words or NOT_CLAIMED


def task() -> str | None:
    """Return the id of the task that runs here and the name of its worker, for `Leased.task`. None outside of a task."""
    return f"{current_task.request.id} {current_task.request.hostname}" if current_task else None


def tell_lost(lost: str) -> None:
    """Have Flower show the task of a dead worker as this worker's failure. Without this event, the task stays STARTED for ever.

    `lost`: as `task` returned it.
    """
    if not current_task:
        return
    lost_id, _, worker = lost.partition(" ")
    try:
        with current_task.app.events.default_dispatcher(hostname=worker) as events:
            events.send("task-failed", uuid=lost_id, exception=repr(Failed("lost: its worker died, or was cut off")))
    except Exception as error:  # noqa: BLE001 - the row is taken back: only Flower's line is wrong
        log.warning("task %s: the event of its loss was not sent (%s)", lost_id, type(error).__name__)


def did(verb: str, count: int) -> str:
    """Return the outcome of a sweep, such as `expired 3`. It is empty if there was nothing to do."""
    return f"{verb} {count}" if count else ""


class Tally:
    """Counts what the sweeps of this process did since the last report."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self.since = time.monotonic()
        self.ran = self.acted = self.failed = 0

    def report(self) -> str:
        """Return the counts as text, and begin again."""
        seconds = time.monotonic() - self.since
        text = f"{self.ran} sweeps in {seconds:.0f} s, {self.acted} with something to do, {self.failed} failed"
        self.begin()
        return text


tally = Tally()


_RECORD_SECONDS = 10
"""The least time between two records of one sweep's success by one process."""
_recorded_at: dict[str, float] = {}


class Sweep(Task):
    """A task that sends events only after it did something (its words are not empty) or failed. `tally` counts every run.

    Beat starts about a hundred sweeps a minute. Nearly all have nothing to do, and would hide the work in Flower.
    """

    abstract = True
    send_events = False

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:  # noqa: ARG002 - Celery's signature
        """Remember when the run began."""
        self.request.began = time.time()

    def on_success(self, retval: str, task_id: str, args: Any, kwargs: Any) -> None:  # noqa: ARG002
        """Count the run, and send its events if it did something."""
        tally.ran += 1
        _record(self.name)
        if retval:
            tally.acted += 1
            self._send("task-succeeded", result=repr(retval), runtime=time.time() - self.request.began)

    def on_failure(self, exc: Exception, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:  # noqa: ARG002
        """Count the run, and send its events. The error's text stays in the log."""
        tally.ran += 1
        tally.failed += 1
        self._send("task-failed", exception=type(exc).__name__, traceback="")

    def _send(self, end: str, **fields: Any) -> None:
        began, end_time = self.request.began, time.time()
        first = {"name": self.name, "args": self.request.argsrepr or "()", "kwargs": self.request.kwargsrepr or "{}"}
        try:
            for kind, at, more in (("task-received", began, first), ("task-started", began, {}), (end, end_time, fields)):
                self.send_event(kind, retry=False, timestamp=at, **more)
        except Exception as error:  # noqa: BLE001 - the sweep has done its work: only its line is missing
            log.warning("%s: its events were not sent (%s)", self.name, type(error).__name__)


def _record(sweep: str) -> None:
    """Record a sweep's success for `/metrics`. The sweep has done its work, so an error is only logged."""
    if time.monotonic() - _recorded_at.get(sweep, -math.inf) < _RECORD_SECONDS:
        return
    _recorded_at[sweep] = time.monotonic()
    try:
        metric.sweep_succeeded(sweep)
    except ERRORS as error:
        log.warning("%s: its success was not recorded (%s)", sweep, type(error).__name__)
