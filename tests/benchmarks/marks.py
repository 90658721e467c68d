"""Marks claims, parked sessions, starts and ends. The workers of a benchmark import it (`celery --include benchmarks.marks`).

A mark is a line of 60 bytes in a pipe, written after the commit of its change in about 2 µs. Nothing else in the workers changes,
but that they count their messages to Postgres.
"""

import ctypes
import os
import signal
import sys
import time
from typing import Any

import benchmarks.counting  # noqa: F401 - counts from here on

from deploy.tether import PR_SET_PDEATHSIG
from models.database.transactions import on_commit, outbox
from models.flow.run.claims import QueuedCall
from models.flow.run.turns import QueuedTurn
from models.session.locked import Locked
from models.session.tool_call.row import ToolCall
from workers import enqueue, turn

_PIPE = os.open(os.environ["BENCH_PIPE"], os.O_WRONLY)


def _end_with_parent() -> None:
    """Have the kernel kill this process of a pool when the worker's main process has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


os.register_at_fork(after_in_child=_end_with_parent)


def say(mark: str, session_id: str, call_id: str = "-") -> None:
    """Write a mark: `C` turn claimed and history read, `P` parked, `T` tool call claimed, `D` done."""
    os.write(_PIPE, f"{mark} {session_id} {call_id} {time.monotonic_ns()}\n".encode())


def _claimed(claim: Any, mark: str) -> Any:
    def marked(queued: Any, *args: Any) -> Any:
        claimed = claim(queued, *args)
        if claimed is not None:
            outbox(queued.locked.db).mark = (mark, queued.locked.session.id, getattr(claimed, "call", claimed).id)
        return claimed

    return marked


def _kept(verb: Any) -> Any:
    def marked(locked: Locked, *args: Any, **kwargs: Any) -> Any:
        session = locked.session
        step = verb(locked, *args, **kwargs)
        if session.status in {"waiting", "idle"}:
            call = next((c.id for c in ToolCall.of_turn(locked) if c.status == "asked"), "-")
            outbox(locked.db).mark = ("P" if session.status == "waiting" else "D", session.id, call)
        return step

    return marked


def _send(box: Any) -> None:
    if mark := vars(box).pop("mark", None):
        say(*mark)
    enqueue.send(box)


turn.checkpoint = _kept(turn.checkpoint)
QueuedTurn.claim = _claimed(QueuedTurn.claim, "C")
QueuedCall.claim = _claimed(QueuedCall.claim, "T")
on_commit(_send)
