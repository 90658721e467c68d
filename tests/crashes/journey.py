"""A session with real workers, and the parts of people and of the beat. Whatever dies, the session is carried to its end."""

import fcntl
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crashes.invariants import Seen, check_invariants, look, version
from crashes.processes import LOOK_PACE, PACE, lives, wait_for
from kombu.connection import Connection
from own_database import Clock
from rows.stage import Stage

from models.session.approval.row import Approval
from models.session.event.row import Event
from models.settings import settings
from workers.sweeps import deadlines, dispatching, rescuing, resuming

LEASE = 46
"""Seconds after which a dead worker's lease has run out."""
BEAT = 0.4
"""Seconds between two rounds of all sweeps, each of which costs 30 ms of CPU time here and in Postgres."""


class Armed:
    """The file of crash points that the workers look into."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def at(self, *boundaries: str) -> None:
        """Have a process die at the first of these boundaries, then one at the second, and so on."""
        fresh = self.file.with_suffix(".fresh")
        fresh.write_text("".join(f"{boundary}\n" for boundary in boundaries))
        fresh.replace(self.file)

    @property
    def left(self) -> list[str]:
        """The boundaries at which no process has died yet."""
        if not self.file.exists():
            return []
        with self.file.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # a dying process locks the file, which is empty for a moment
            return file.read().splitlines()


class Journey:
    """One session, driven by messages, decisions and sweeps."""

    def __init__(self, stage: Stage, clock: Clock, armed: Armed, workdirs: Path) -> None:
        self.stage, self.clock, self.armed, self.workdirs = stage, clock, armed, workdirs
        self.session_id = ""
        self.sweep: Callable[[], None] = sweep_here
        self.beats = False
        self._next_beat = 0.0

    def begin(self, **policies: Any) -> "Journey":
        """Create the session. Its agent has these tools: `bash="always_ask"`."""
        self.session_id = self.stage.session(**policies)
        return self

    def say(self, *script: str) -> Event:
        """Post a message, whose lines are the stand-in's script."""
        return self.stage.message(self.session_id, "\n".join(script))

    def interrupt(self) -> None:
        """End the run."""
        self.stage.send(self.session_id, {"type": "user.interrupt"})

    def look(self) -> Seen:
        """The session's rows."""
        return look(self.stage.workspace_id, self.session_id)

    def effects(self, token: str = "effect") -> int:
        """How often a tool has written this word: read from the tool's file, not from Assent's rows."""
        file = self.workdirs / self.session_id / "files" / "effects"
        return file.read_text().split().count(token) if file.exists() else 0

    def until(self, condition: Callable[[Seen], Any], seconds: float = 20) -> Seen:
        """Wait until `condition` holds for the session. Returns the rows, whose invariants are checked at each look.

        Fails after so many seconds without progress: a step of a session may start processes, which a busy machine delays.

        While the beat does not beat, a lost hint is sent again, as the dispatch sweep does. Nothing else is repaired.
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
            self._beat_if_due()
            if not self.beats and waited > settings().rehint_seconds:
                dispatching.dispatch()
            wait_a_beat(lambda seen=seen: version(self.stage.workspace_id, self.session_id) != seen.version)

    def until_idle(self) -> Seen:
        """Wait for the end of the run."""
        return self.until(lambda seen: seen.session.status == "idle")

    def until_asked(self, kind: str = "tool_call") -> Approval:
        """Wait for a question to a person."""
        seen = self.until(lambda seen: [a for a in seen.pending if a.kind == kind])
        return next(a for a in seen.pending if a.kind == kind)

    def decide(self, **decision: Any) -> str:
        """Wait until a call waits for a person, and decide."""
        return self.stage.decide(self.until_asked(), **decision)

    def until_crashed(self) -> None:
        """Wait until a process has died at each armed boundary. Then its lease runs out, and from now on the beat beats."""
        deadline = time.monotonic() + 60  # a program may have to start again several times first
        while left := self.armed.left:
            assert time.monotonic() < deadline, f"no process came to {left}: {spell(self.look())}"
            self._beat_if_due()
            wait_a_beat(lambda left=left: self.armed.left != left)
        # In two steps, so that leases that other processes take meanwhile do not run out as well.
        self.later(LEASE / 2)
        self._let_the_living_end()
        self.later(LEASE / 2)

    def kill_at(self, boundary: str, task: str, *args: Any) -> None:
        """Have a worker run a task, and die at this boundary of the task."""
        self.armed.at(boundary)
        send_task(task, *args)
        wait_for(f"a process dies at {boundary}", lambda: not self.armed.left)

    def _let_the_living_end(self) -> None:
        """Wait for short work of living workers. A worker that was about to begin has read the clock before, or reads it after."""
        self.stage.locked(self.session_id, lambda _: None)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(lives(pid_of(row.worker)) for row in self.look().running):
            time.sleep(PACE)

    def later(self, seconds: float = LEASE) -> None:
        """Let so much time pass. From now on the beat beats, for the first time at once."""
        self.clock.advance(seconds)
        self.beats = True
        self._next_beat = 0.0

    def _beat_if_due(self) -> None:
        """Run all sweeps, if the beat beats and the last round is a beat ago."""
        if self.beats and time.monotonic() >= self._next_beat:
            self.sweep()
            self._next_beat = time.monotonic() + BEAT

    def settle_unknown(self, token: str = "effect", *, happened: bool | None = None) -> None:
        """Settle an unknown outcome as happened or as a rerun. By default the tool's file tells whether the effect happened."""
        approval = self.until_asked("unknown_outcome")
        if self.effects(token) if happened is None else happened:
            self.stage.decide(approval, outcome="happened", content=({"type": "text", "text": "It happened: I looked."},))
        else:
            self.stage.decide(approval, outcome="rerun")


def wait_a_beat(changed: Callable[[], bool]) -> None:
    """Wait for a change, but no longer than until the next beat of the sweeps."""
    beat = time.monotonic() + BEAT
    while time.monotonic() < beat and not changed():
        time.sleep(LOOK_PACE)


def pid_of(worker: str | None) -> int:
    """The id of the process in a worker's name. 0 if there is no worker."""
    return int((worker or "0").rpartition(":")[2])


def send_task(name: str, *args: Any) -> None:
    """Send a task to the workers of sweeps."""
    from workers.celery import app

    with Connection(settings().redis_url) as connection:
        app.send_task(name, args, queue="sweeps", connection=connection, ignore_result=True, retry=False)


def sweep_here() -> None:
    """Run each sweep once, in this process."""
    rescuing.rescue()
    deadlines.expire_approvals()
    deadlines.expire_calls()
    deadlines.remind_approvers()
    resuming.release_granted()
    resuming.resume_at_limits()
    resuming.end_halts()
    dispatching.dispatch()


def bash(command: str, **more: str) -> str:
    """The line of a stand-in's script that makes this call."""
    return f"call bash {json.dumps({'command': command, **more})}"


EFFECT = bash("echo effect >> effects")


def spell(seen: Seen) -> str:
    """A session in a few lines, for a failed test."""
    rows = [f"session {seen.session.status} {seen.session.stop_reason}"]
    rows += [f"turn {t.number} {t.status} attempt {t.attempt} fence {t.fence}" for t in seen.turns]
    rows += [f"call {c.name} {c.status} attempt {c.attempt} {seen.results.get(c.id)}" for c in seen.calls]
    rows += [f"approval {a.kind} {a.status} {a.decision}" for a in seen.approvals]
    rows += [f"error {e.body}" for e in seen.of("session.error")]
    return "\n".join(rows)
