"""A part of the archive takes the place of its rows in one transaction. Before it, and after a crash, the rows are there."""

from collections.abc import Callable

import pytest
from own_database import Clock
from rows.archived import MONTH, archive, conversation, parts, read_back, stored
from rows.stage import Stage

from models.database.rows import Stale
from models.database.transactions import transaction
from models.operate import archiving
from models.operate.archiving import DueSession
from models.session.archive import contents
from models.session.archive.part import ArchivePart, erase_parts
from workers.sweeps import archiving as archiving_sweeps

Crash = Callable[[str], None]


class Killed(BaseException):
    """The process died here."""


@pytest.fixture
def old(stage: Stage, clock: Clock) -> str:
    """A session that is due."""
    session = conversation(stage)
    clock.advance(MONTH)
    return session


@pytest.fixture
def dies_before(monkeypatch: pytest.MonkeyPatch) -> Crash:
    """Has the process die before it calls this function of `contents` or `archiving`."""

    def crash(name: str) -> None:
        def die(*_: object) -> None:
            raise Killed

        monkeypatch.setattr(contents if hasattr(contents, name) else archiving, name, die)

    return crash


@pytest.mark.parametrize("step", ["store_content", "take_place"])
def test_a_crash_leaves_the_rows_and_a_later_sweep_begins_again(
    stage: Stage, old: str, clock: Clock, dies_before: Crash, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_back(stage, old)
    dies_before(step)
    with pytest.raises(Killed):
        archive(stage, old)
    monkeypatch.undo()
    [left] = parts(stage, old)
    assert (left.status, stored(stage, left) is None) == ("writing", step == "store_content")
    assert read_back(stage, old) == before, "from the rows"
    archiving_sweeps.archive()
    assert read_back(stage, old) == before, "from the part"
    archiving_sweeps.remove_parts()
    assert len(parts(stage, old)) == 2, "another worker may still store the first one"
    clock.advance(3601)
    archiving_sweeps.remove_parts()
    [kept] = parts(stage, old)
    assert kept.status == "kept"
    assert stored(stage, left) is None
    assert read_back(stage, old) == before


def test_a_part_that_was_taken_for_dead_takes_no_place(stage: Stage, old: str, clock: Clock) -> None:
    before = read_back(stage, old)
    begun = archiving.begin_part(DueSession(old, stage.workspace_id))
    assert begun
    part, lines = begun
    content = contents.encoded(part, lines)
    contents.store_content(part, content)
    clock.advance(3601)
    archiving_sweeps.remove_parts()
    with pytest.raises(Stale):
        archiving.take_place(part, lines, content)
    assert parts(stage, old) == []
    assert read_back(stage, old) == before


@pytest.mark.parametrize("change", ["a message", "an erased text", "an erased session", "another part"])
def test_what_changed_meanwhile_is_not_replaced(stage: Stage, old: str, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = contents.store_content

    def store(part: ArchivePart, content: bytes) -> None:
        real(part, content)
        monkeypatch.setattr(contents, "store_content", real)
        with transaction(stage.workspace_id) as db:
            if change == "an erased text":
                db.write("UPDATE event SET body = body || '{\"content\": []}' WHERE session_id = %(id)s AND seq = 1", id=old)
            if change == "an erased session":
                erase_parts(db, old)
        if change == "a message":
            stage.message(old, "Wait.")
        if change == "another part":
            assert archive(stage, old) == 1

    monkeypatch.setattr(contents, "store_content", store)
    archive(stage, old)
    kept = [part for part in parts(stage, old) if part.status == "kept"]
    assert len(kept) == (1 if change == "another part" else 0)
    assert bool(stage.events(old)) != bool(kept), "each event is in one place"


def test_an_erased_part_is_read_by_nobody_and_its_content_removed(stage: Stage, old: str) -> None:
    archive(stage, old)
    [part] = parts(stage, old)
    assert read_back(stage, old)["all"]
    for _ in range(2):  # idempotent
        with transaction(stage.workspace_id) as db:
            erase_parts(db, old)
    after = read_back(stage, old)
    assert after["all"] == after["backwards"] == after["types"] == []
    assert "secret plan" not in str((after["history"], stage.read(old).archived_lines))
    archiving_sweeps.remove_parts()
    assert stored(stage, part) is None
    assert parts(stage, old) == []
    stage.message(old, "Go on.")
    assert stage.begin(old)


def test_a_part_whose_file_cannot_be_removed_steps_back(stage: Stage, old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(stage, old)
    other = conversation(stage)
    with transaction(stage.workspace_id) as db:
        erase_parts(db, old)

    def fail(_part: ArchivePart) -> None:
        raise OSError("no disk")

    with monkeypatch.context() as patch:
        patch.setattr(contents, "remove", fail)
        archiving_sweeps.remove_parts()
    assert [part.status for part in parts(stage, old)] == ["gone"]
    assert archiving.due_parts() == [], "it waits for its next try"
    assert stage.events(other)
