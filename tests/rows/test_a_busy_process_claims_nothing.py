"""A process that holds as many leases as it may leaves queued rows to other processes."""

from collections.abc import Callable

from rows.stage import Stage

from models.session.turn.row import Turn
from workers import leases
from workers import turn as task
from workers.outcome import BUSY


def test_a_full_process_leaves_the_turn_queued(stage: Stage, setting: Callable[[str, str], None]) -> None:
    setting("turns_in_flight", "1")
    session = stage.session()
    stage.message(session)
    turn = stage.thread(session).turn_id or ""
    with leases.hold(Turn(id="turn_other", fence=1)):
        assert not leases.ready(patience=0)
        assert task._claim(turn, session, stage.workspace_id) == BUSY
    assert stage.get(Turn, turn).status == "queued"
    assert leases.ready(patience=0)
