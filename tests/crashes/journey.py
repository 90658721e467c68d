"""A conversation with real workers, and the people and the beat in it: whatever dies on the way, it is carried to its end."""

import fcntl
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crashes.invariants import Seen, check_invariants, look
from crashes.processes import LOOK_PACE, PACE, lives, wait_for
from kombu.connection import Connection
from own_database import Clock
from rows.stage import Stage

from models.session.approval import Approval
from models.session.event import Event
from models.settings import settings
from workers import sweeps

LEASE = 46
"""Seconds after which a dead worker's lease has run out."""


class Armed:
    """The file of crash points that the workers look into."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def at(self, *boundaries: str) -> None:
        """Have the next process die that comes to the first of these; then the next."""
        fresh = self.file.with_suffix(".fresh")
        fresh.write_text("".join(f"{boundary}\n" for boundary in boundaries))
        fresh.replace(self.file)

    @property
    def left(self) -> list[str]:
        """Where nobody has died yet."""
        if not self.file.exists():
            return []
        with self.file.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # who takes a line off has it locked, and empty for a moment
            return file.read().splitlines()


class Journey:
    """One session, driven by messages and decisions, as its people and its beat would drive it."""

    def __init__(self, stage: Stage, clock: Clock, armed: Armed, workdirs: Path) -> None:
        self.stage, self.clock, self.armed, self.workdirs = stage, clock, armed, workdirs
        self.session_id = ""
        self.sweep: Callable[[], None] = sweep_here
        self.beats = False

    def begin(self, **policies: Any) -> "Journey":
        """A session whose agent has these tools: `bash="always_ask"`."""
        self.session_id = self.stage.session(**policies)
        return self

    def say(self, *script: str) -> Event:
        """A message; its lines are the stand-in's script."""
        return self.stage.message(self.session_id, "\n".join(script))

    def interrupt(self) -> None:
        """End the run."""
        self.stage.send(self.session_id, {"type": "user.interrupt"})

    def look(self) -> Seen:
        """The session's rows."""
        return look(self.stage.workspace_id, self.session_id)

    def effects(self, token: str = "effect") -> int:
        """How often a tool has left this line: seen from outside, not from our rows."""
        file = self.workdirs / self.session_id / "files" / "effects"
        return file.read_text().split().count(token) if file.exists() else 0

    def until(self, condition: Callable[[Seen], Any], seconds: float = 20) -> Seen:
        """Wait until `condition` holds for the session, the beat beating. Check its invariants at each look.

        Fails after so many seconds without progress: a step of a session may start processes, which a busy machine delays.

        Without a beat a hint that Redis lost is sent again, as the dispatch sweep promises; nothing else is repaired.
        """
        start, before = time.monotonic(), ""
        while True:
            seen = check_invariants(self.stage.workspace_id, self.session_id)
            if condition(seen):
                return seen
            if (now := spell(seen)) != before:
                start, before = time.monotonic(), now
            waited = time.monotonic() - start
            assert waited < seconds, f"stuck: {spell(seen)}"
            if self.beats:
                self.sweep()
            elif waited > settings().rehint_seconds:
                sweeps.dispatch()
            time.sleep(LOOK_PACE)

    def until_idle(self) -> Seen:
        """Wait for the end of the run."""
        return self.until(lambda seen: seen.session.status == "idle")

    def until_asked(self, kind: str = "tool_call") -> Approval:
        """Wait for a question to a person."""
        found = self.until(lambda seen: [a for a in seen.pending if a.kind == kind])
        return next(a for a in found.pending if a.kind == kind)

    def decide(self, **said: Any) -> str:
        """Wait until a person is asked whether a call may run, and answer."""
        return self.stage.decide(self.until_asked(), **said)

    def until_crashed(self) -> None:
        """Wait until somebody died at each armed boundary, then until the dead one's lease has run out, and let the beat go on."""
        deadline = time.monotonic() + 60  # some die only once a program was started again, several times over
        while left := self.armed.left:
            assert time.monotonic() < deadline, f"nobody came to {left}: {spell(self.look())}"
            if self.beats:
                self.sweep()
            time.sleep(LOOK_PACE)
        # In two steps: leases that others take meanwhile are not to run out with the dead one's.
        self.later(LEASE / 2)
        self._let_the_living_end()
        self.later(LEASE / 2)

    def someone_dies(self, boundary: str, task: str, *args: Any) -> None:
        """Have a worker do something, and die of it at this boundary."""
        self.armed.at(boundary)
        send_task(task, *args)
        wait_for(f"somebody dies at {boundary}", lambda: not self.armed.left)

    def _let_the_living_end(self) -> None:
        """What others have begun comes to its end, if it is short. Who is about to begin has read the clock by then, or will."""
        self.stage.locked(self.session_id, lambda _db, _session: None)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(lives(pid_of(row.worker)) for row in self.look().running):
            time.sleep(PACE)

    def later(self, seconds: float = LEASE) -> None:
        """So much time passes, and from now on the beat beats."""
        self.clock.advance(seconds)
        self.beats = True

    def settle_unknown(self, token: str = "effect", *, happened: bool | None = None) -> None:
        """A person looks whether it happened (unless it is said here), and says so or has it run again."""
        approval = self.until_asked("unknown_outcome")
        if self.effects(token) if happened is None else happened:
            self.stage.decide(approval, outcome="happened", content=({"type": "text", "text": "It happened: I looked."},))
        else:
            self.stage.decide(approval, outcome="rerun")


def pid_of(worker: str) -> int:
    """The process that holds a row, which has it as `leases.worker` names it."""
    return int(worker.rpartition(":")[2])


def send_task(name: str, *args: Any) -> None:
    """Have a worker do something that tests want a worker to do."""
    from workers.celery import app

    with Connection(settings().redis_url) as connection:
        app.send_task(name, args, queue="sweeps", connection=connection, ignore_result=True, retry=False)


def sweep_here() -> None:
    """Beat once, in this process."""
    sweeps.rescue()
    sweeps.expire_approvals()
    sweeps.expire_calls()
    sweeps.remind_approvers()
    sweeps.release_granted()
    sweeps.resume_at_limits()
    sweeps.end_halts()
    sweeps.dispatch()


def bash(command: str) -> str:
    """A line of a script: the call."""
    return f"call bash {json.dumps({'command': command})}"


EFFECT = bash("echo effect >> effects")


def spell(seen: Seen) -> str:
    """A session in a few lines, for a failed test."""
    rows = [f"session {seen.session.status} {seen.session.stop_reason}"]
    rows += [f"turn {t.number} {t.status} attempt {t.attempt} fence {t.fence}" for t in seen.turns]
    rows += [f"call {c.name} {c.status} attempt {c.attempt} {seen.results.get(c.id)}" for c in seen.calls]
    rows += [f"approval {a.kind} {a.status} {a.decision}" for a in seen.approvals]
    rows += [f"error {e.body}" for e in seen.of("session.error")]
    return "\n".join(rows)


def approval_seconds() -> float:
    """How long people have."""
    return settings().approval_seconds
