"""When a session is deleted, its files are removed, and no other session's."""

from collections.abc import Callable
from pathlib import Path

from rows.stage import Stage

from models.flow.begin import sessions
from workers import tool
from workers.tools.sandbox import workdir


def test_the_sweep_removes_folders_of_sessions_that_are_gone(
    stage: Stage, tmp_path: Path, setting: Callable[[str, str], None]
) -> None:
    """In a tools worker, which mounts the workdirs."""
    setting("workdir_root", str(tmp_path))
    gone, there = stage.session(), stage.session()
    for session in (gone, there):
        (workdir.session_root(session) / "files" / "note").write_text("x")
    workdir.storage_id(tmp_path)
    stage.locked(gone, sessions.delete)

    tool.tidy()

    assert sorted(path.name for path in tmp_path.iterdir()) == [".storage", there]
