"""Queue messages arrive five times, never, or late and in any order. Rows decide, not messages."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from crashes.invariants import Seen, check_invariants, look, version
from crashes.journey import EFFECT, spell, sweep_here, wait_a_beat
from crashes.processes import LOOK_PACE, wait_for
from faults.carrier import Carrier, Message, five_times, three_of_ten_lost
from own_database import Clock
from rows.stage import Stage

from models.errors import Conflict


@pytest.fixture(scope="package")
def workdirs(fault_folder: Path) -> Path:
    """The folder in which tools work."""
    return fault_folder / "workdirs"


@pytest.fixture
def effects(workdirs: Path) -> Callable[[str], int]:
    """How often a session's tool took effect, by the tool's own file."""

    def count(session_id: str) -> int:
        file = workdirs / session_id / "files" / "effects"
        return file.read_text().count("effect\n") if file.exists() else 0

    return count


def until(stage: Stage, session_id: str, condition: Callable[[Seen], object]) -> Seen:
    """Wait until the condition holds for a session. Returns its rows, whose invariants are checked at each look."""
    deadline = time.monotonic() + 25
    while not condition(seen := check_invariants(stage.workspace_id, session_id)):
        assert time.monotonic() < deadline, spell(seen)
        wait_a_beat(lambda seen=seen: version(stage.workspace_id, session_id) != seen.version)
    return seen


def idle(seen: Seen) -> bool:
    """True if the run is over."""
    return seen.session.status == "idle"


def test_every_message_five_times_runs_everything_once(carrier: Carrier, stage: Stage, effects: Callable[[str], int]) -> None:
    carrier.rule = five_times
    script = f'{EFFECT}\n{EFFECT}\ncall read {{"file_path": "effects"}}\nthen\n{EFFECT}\nthen\nsay Done.'
    sessions = [stage.session(bash="always_ask", read="always_allow") for _ in range(4)]
    for session_id in sessions:
        stage.message(session_id, f"{session_id}\n{script}")
    for session_id in sessions:
        for pending in (2, 1):
            seen = until(stage, session_id, lambda seen, pending=pending: len(seen.pending) == pending)
            for approval in seen.pending:
                stage.decide(approval, result="allow")
        seen = until(stage, session_id, idle)
        assert effects(session_id) == 3
        assert [turn.attempt for turn in seen.turns] == [1, 1, 1]
        assert [call.attempt for call in seen.calls] == [1, 1, 1, 1]
    assert all(copies == 5 for _, copies in carrier.arrived)


def test_sweeps_send_lost_messages_again(carrier: Carrier, stage: Stage, clock: Clock, effects: Callable[[str], int]) -> None:
    """30 % never arrive. The next two sweeps, within 10 s, send a lost message again, until all is done."""
    sent: list[tuple[int, str, int]] = []
    sweeps = 0
    lose = three_of_ten_lost(seed=11)

    def note(message: Message) -> int:
        sent.append((sweeps, message.row_id, lose(message)))
        return sent[-1][2]

    carrier.rule = note
    sessions = [stage.session(bash="always_allow") for _ in range(12)]
    for session_id in sessions:
        stage.message(session_id, f"{session_id}\n{EFFECT}\nthen\nsay Done.")
    while waiting := [seen for s in sessions if not idle(seen := look(stage.workspace_id, s))]:
        assert sweeps < 60, "sweeps do not help"
        if not any(row.status == "running" for seen in waiting for row in (*seen.turns, *seen.calls)):
            clock.advance(5)  # not longer, or the lease of a living worker would run out
            sweeps += 1
            sweep_here()
        time.sleep(LOOK_PACE)
    lost = [row_id for at, row_id, copies in sent if not copies]
    assert len(lost) >= 8, "enough messages were lost"
    for row_id in set(lost):
        hints = [(at, copies) for at, other, copies in sent if other == row_id]
        if not hints[0][1]:
            assert hints[1][0] - hints[0][0] <= 2, "sent again within two sweeps"
    for session_id in sessions:
        check_invariants(stage.workspace_id, session_id)
        assert effects(session_id) == 1


def test_messages_a_minute_late_and_in_any_order_release_nothing(
    carrier: Carrier, stage: Stage, clock: Clock, effects: Callable[[str], int]
) -> None:
    """A late message does not run a call that was cancelled after its allow, or whose approval expired."""
    sessions = [stage.session(bash="always_ask", approval={"timeout_seconds": 30}) for _ in range(9)]
    for session_id in sessions:
        stage.message(session_id, f"{session_id}\n{EFFECT}\nthen\nsay Done.")
    approvals = {s: until(stage, s, lambda seen: seen.pending).pending[0] for s in sessions}
    carrier.hold()
    allowed, stopped, undecided = sessions[:3], sessions[3:6], sessions[6:]
    for session_id in (*allowed, *stopped):
        stage.decide(approvals[session_id], result="allow")
    for session_id in stopped:
        stage.send(session_id, {"type": "user.interrupt"})
        stage.message(session_id, f"Again, {session_id}\nsay Other.")
    for _ in range(12):
        clock.advance(5)
        sweep_here()
    assert all(stage.approvals(s)[0].status == "expired" for s in undecided)
    wait_for("all messages are held", lambda: len(carrier.held or []) >= 9)
    assert not any(effects(s) for s in sessions), "nothing runs without its message"
    dice = random.Random(12)
    carrier.rule = lambda _: dice.choice((1, 2))
    assert carrier.release(lambda held: dice.sample(held, len(held))) >= 9
    for session_id in sessions:
        until(stage, session_id, idle)
        assert effects(session_id) == (session_id in allowed)
    for session_id in allowed:
        with pytest.raises(Conflict):
            stage.decide(approvals[session_id], result="deny")
