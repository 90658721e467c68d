"""Rule 16: a process that holds all it can, or whose clock ticks late, leaves what is queued to others."""

from collections.abc import Iterator

import pytest
from rows.stage import Stage

from models.session.turn import Turn
from models.settings import settings
from workers import leases
from workers import turn as task


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that may hold one lease."""
    monkeypatch.setenv("ASSENT_TURNS_IN_FLIGHT", "1")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def test_a_process_that_is_full_leaves_the_turn_queued(stage: Stage, full: None) -> None:
    """It stays queued, and the dispatch sweep says so again."""
    session = stage.session()
    stage.message(session)
    turn = stage.read(session).turn_id or ""
    with leases.hold("turn_other", 1):
        assert not leases.ready(patience=0)
        assert task._claim(turn, session, stage.workspace_id) is None
    assert stage.get(Turn, turn).status == "queued"
    assert leases.ready(patience=0)
